# SPDX-License-Identifier: Apache-2.0
"""Small made-up results in the documented layout."""

import json

HOSTILE = "</script><img src=x onerror=alert(1)>%{x}"  # a job type


def bound(limit, gain, admitted, jobs=("lm", HOSTILE)):
    return {"slowdown_bound": limit, "pairs_admitted": admitted, "pairs_admitted_of_mix_pct": 10.0 * admitted,
            "exclusive_rate": 16.0, "shared_rate": 16.0 * (1 + gain / 100), "gain_pct": gain,
            "makespan_cut_pct": 100 * (1 - 1 / (1 + gain / 100)), "pays": gain >= 5,
            "pairs": [{"gpu": "v100", "job_a": jobs[0], "job_b": jobs[1], "gpus": 3.0, "rate": 4.0}] if admitted else []}


def case(gpu, gpus, bounds):
    return {"gpu": gpu, "gpus": gpus, "profiles_left_out": [], "pairs": 3, "pairs_run": 3, "pairs_apart": 0,
            "verdict": "A verdict.", "bounds": bounds}


def potential():
    v100 = case("v100", 12.0, [bound(1.25, 3.0, 1), bound(1.5, 20.0, 2), bound(None, 40.0, 3)])
    k80 = case("k80", 4.0, [bound(1.25, 0.0, 0), bound(1.5, 0.0, 0), bound(None, 4.0, 3)])
    both = case(None, 16.0, [bound(1.25, 2.0, 1), bound(1.5, 15.0, 2), bound(None, 30.0, 3)])
    return {"schema": "horus-potential", "version": 1, "source": "measured", "jobs": 2, "profiles": ["lm", HOSTILE],
            "reference": "v100", "clip_percentile": 100.0, "least_gain_pct": 5.0, "notes": [], "cases": [v100, k80, both]}


def told(document, command, gpus, quantiles=False, nodes=None):
    """The same as newer versions write it: with the cluster, what made it, and quantiles."""
    made = {**document, "horus": "0.1.0", "revision": "0123456789ab-dirty", "command": command, "cluster": {"gpus": gpus}}
    if quantiles:
        made["cases"] = [{**case, "quantiles": [{**bound(1.31, 12.5, 1), "pct": 50}]} for case in document["cases"]]
    if nodes:
        made["cluster"]["nodes"] = nodes
    return made


def comparison(jct, load=""):
    """jct: policy: seconds by seed. Returns results.json, and the text of runs by key."""
    base = jct["exclusive"]
    mean = lambda values: sum(values) / len(values)  # noqa: E731
    summary, runs, texts = [], [], {}
    for policy, values in jct.items():
        difference = mean(values) - mean(base)
        change = {"mean": mean(values), "difference": difference, "difference_low": difference - 10, "difference_high": difference + 10}
        summary.append({"workload": "w", "policy": policy, "metrics": {"jct_mean_s": change, "work_rate": {**change, "difference": None, "difference_low": None, "difference_high": None}}})
        for seed, value in enumerate(values, 1):
            key = f"{policy}{seed}"
            runs.append({"workload": "w", "policy": policy, "seed": seed, "run": key, "metrics": {"jct_mean_s": value, "work_rate": 0.5}})
            texts[key] = f"schema 1\ntruth 12\nworkload\nsample: 9\n{load}policy\npolicy: {policy}\nseed {seed}\n"
    return {"schema": "horus-compare", "version": 1, "baseline": "exclusive", "seeds": [1, 2],
            "metrics": [{"name": "jct_mean_s", "better": "lower"}, {"name": "work_rate", "better": "higher"}],
            "summary": summary, "runs": runs}, texts


def write_comparison(folder, results, texts):
    (folder / "runs").mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps(results))
    (folder / "machine.json").write_text(json.dumps({"horus": "0.1.0", "command": "horus compare grid.yaml", "revision": "abc123"}))
    for key, text in texts.items():
        (folder / "runs" / f"{key}.json").write_text(json.dumps({"schema": "horus-run", "version": 1, "run": text, "metrics": {}}))


def write_timeline(folder, name="run", policy="horus", jobs=6):
    """Job i is of type lm or hostile, on a V100 or a K80, for (i + 1) hours."""
    hour = 3_600_000_000
    rows = [(0, "arrive", i, "", "") for i in range(jobs)]
    rows += [(0, "start", i, f"n{i // 2 % 2}", str(i % 2)) for i in range(jobs)]
    rows += [((i + 1) * hour, "finish", i, f"n{i // 2 % 2}", str(i % 2)) for i in range(jobs)]
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    (folder / f"{name}.csv").write_text("time_us,event,job,node,gpus\n" + text)
    (folder / f"{name}.json").write_text(json.dumps({"schema": "horus-simulate", "version": 1, "workload": "w", "policy": policy, "seed": 1, "metrics": {}}))
