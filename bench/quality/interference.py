#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted against measured slowdown of two jobs on one GPU, for pairs, jobs, families and GPU types left out.

Every table of measured pairs under --data that pairs.py knows is turned into pairs and jobs, and `horus evaluate --pairs`
trains every interference model without one group at a time. What the jobs demand is predicted from their graphs by a
bundle trained first on the tables of single runs (datasets.py) without any net of the pairs: neither the demands nor the
slowdowns have seen what is judged. Beside the errors stand what the predictions are worth in use (pair_games.py).
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import datasets
import pair_games
import pairs
import predict

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LEAVES = ("pair", "job", "family", "gpu")
GAMES = ("pair", "family")
OBSERVED = (0, 1, 3, 10)  # co-locations of a newcomer
SETTLED = 10  # co-locations of other jobs on a card that training has not seen
# A made-up card on which sharing costs little: what each job loses beyond 1 is this share of what it lost on the last GPU
# type of the table. No card was measured so; it stands for a model whose level is wrong by a lot.
LIGHT = 0.15
MODEL = "horus"
SMOKE_MODELS = ("horus", "constant")
BOUNDS = (1.25, 1.5, 2.0)
GUARDS = (1.1, 1.2, 1.3, 1.5, 3)  # of policy horus, for jobs that state no bound
# Key of an evaluation -> metric, unit, better.
ERRORS = {"mape_pct": ("mape", "%", "lower"), "median_pct": ("median", "%", "lower"), "r2": ("r2", "", "higher"),
          "spearman": ("rank", "", "higher")}
AIMS = {"slowdown_mape_pair": {"k80": 6, "p100": 7, "v100": 8}, "slowdown_mape_family": {"k80": 12, "p100": 13, "v100": 15},
        "slowdown_mape_family_online3": {"p100": 8},
        "slowdown_admissible_150_family_online0_residents": {"v100": 10},
        "slowdown_admissible_150_family_online3_residents": {"v100": 40, "p100": 20},
        "slowdown_admissible_150_family_online10_residents": {"v100": 60, "p100": 35},
        "slowdown_admissible_200_family_online3_residents": {"v100": 75},
        **{f"slowdown_coverage_family_online{seen}_residents": {gpu: 90 for gpu in ("k80", "p100", "v100")} for seen in OBSERVED},
        **{f"slowdown_mape_gpu_online{seen}_residents": {gpu: aim for gpu in ("k80", "p100", "v100")}
           for seen, aim in zip(OBSERVED, (20, 9, 7, 6))},
        "partner_gap_pair": {"k80": 75, "p100": 85, "v100": 85}, "partner_gap_family": {"k80": 40, "p100": 50, "v100": 60}}


def run(name, command):
    """Standard output, or None with the reason on stderr."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode == 0:
        return done.stdout
    print(f"interference: {name}: {done.stderr.strip()}", file=sys.stderr)
    return None


def column(path, name):
    with path.open(newline="", encoding="utf-8") as file:
        return {row[name] for row in csv.DictReader(file)}


def train_demands(horus, tables, nets, folder):
    """A bundle that has seen none of the nets, and how it came to be."""
    out = folder / "demands.hbundle"
    command = [horus, "train", "--out", str(out)]
    for table in tables:
        command += ["--data", str(table)]
    for table in tables:  # as the built-in bundle: a step with work on the host teaches nothing of the graph
        nets = nets | set(predict.host_nets(table))
    for net in sorted(nets & set().union(*(column(table, "net") for table in tables))):
        command += ["--without", net]
    if tables and run("demands", command) is not None:
        return ["--bundle", str(out)], "demands predicted by a bundle that has seen no net of the pairs"
    print("interference: no bundle without the nets of the pairs: demands are the built-in bundle's", file=sys.stderr)
    return [], "demands predicted by the built-in bundle, WHICH MAY HAVE SEEN THESE JOBS"


def evaluate(horus, table, jobs, how, bundle, models):
    command = [horus, "evaluate", "--pairs", str(table), "--jobs", str(jobs), "--json", *how, *bundle]
    for model in models:
        command += ["--model", model]
    text = run(f"{table.stem}, {' '.join(how)}", command)
    return json.loads(text)["evaluations"] if text else []


class Rows:
    """The rows of one table; a metric's own model first, the others beside it and after it."""

    def __init__(self, suffix):
        self.suffix, self.rows = suffix, []

    def add(self, metric, gpu, values, unit, better, protocol, beside=""):
        """`values`: model -> number."""
        values = {model: value for model, value in values.items() if value is not None}
        for model, value in values.items():
            others = "; ".join(f"{m} {v:.3g}" for m, v in values.items() if m != model) if model == MODEL else ""
            own = beside.get(model, "") if isinstance(beside, dict) else beside
            self.rows.append({"metric": f"{metric}_{gpu}{self.suffix}" + ("" if model == MODEL else f"_{model}"),
                              "value": value, "unit": unit,
                              "aim": AIMS.get(metric, {}).get(gpu) if model == MODEL and not self.suffix else None,
                              "better": better, "baseline": "; ".join(text for text in (own, others) if text),
                              "protocol": protocol})


def short(gpu):
    return gpu.split("-")[0]


def admitted(rows, bound):
    """Per cent of pairs that the bound lets in by prediction and in truth, and of those let in how many exceed it."""
    told = {}
    for row in rows:
        if row["upper"] is not None:
            key = (row["campaign"], row["left_out"], *sorted((row["victim"], row["other"])))
            told.setdefault(key, []).append(row)
    whole = [both for key, both in told.items() if len(both) == (1 if key[2] == key[3] else 2)]
    let_in = [both for both in whole if all(row["upper"] <= bound for row in both)]
    fine = [all(row["measured"] <= bound for row in both) for both in whole]
    wrong = sum(any(row["measured"] > bound for row in both) for both in let_in)
    if not whole:
        return None
    return 100 * len(let_in) / len(whole), 100 * sum(fine) / len(whole), 100 * wrong / max(1, len(let_in))


def guarded(rows, guard):
    """The worst slowdown of victims who are expected to lose no more than the guard, and what stands beside it."""
    let_in = sorted(row["measured"] for row in rows if row["predicted"] is not None and row["predicted"] <= guard)
    if not let_in:
        return None, ""
    median, nine = (let_in[int(share * (len(let_in) - 1))] for share in (0.5, 0.9))
    return let_in[-1], f"median {median:.2f}, 90 % below {nine:.2f}; {100 * len(let_in) / len(rows):.1f} % are let in"


def add_errors(rows, leave, gpu, of, demands):
    first = next(iter(of.values()))
    protocol = (f"{first['rows_measured']} slowdowns, each predicted without its {leave} ({first['groups']}); {demands}")
    for key, (name, unit, better) in ERRORS.items():
        rows.add(f"slowdown_{name}_{leave}", gpu, {m: e[key] for m, e in of.items()}, unit, better, protocol)
    rows.add(f"slowdown_coverage_{leave}", gpu, {m: e["coverage_observed_pct"] for m, e in of.items()}, "%", "higher",
             protocol, {m: f"promised {e['coverage_promised_pct']:.0f} %; bound over truth by {e['slack_pct']:.0f} % on average"
                        for m, e in of.items() if e["slack_pct"] is not None})
    for guard in GUARDS if leave == "family" else ():
        worst = {m: guarded(e["rows"], guard) for m, e in of.items()}
        rows.add(f"slowdown_guarded_{100 * guard:.0f}_{leave}", gpu, {m: w[0] for m, w in worst.items()}, "x", "lower",
                 f"worst of the victims expected to lose at most {guard:g}; {protocol}", {m: w[1] for m, w in worst.items()})
    for bound in BOUNDS:
        shares = {m: admitted(e["rows"], bound) for m, e in of.items()}
        rows.add(f"slowdown_admitted_{100 * bound:.0f}_{leave}", gpu, {m: s and s[0] for m, s in shares.items()}, "%",
                 "higher", f"pairs whose bounds are both at most {bound:g}; {protocol}",
                 {m: f"truly {s[1]:.0f} %; {s[2]:.0f} % of the admitted exceed it" for m, s in shares.items() if s})


def tables_of(evaluation):
    """Campaign -> measured slowdowns, and left-out group -> predicted slowdowns; both by victim and other."""
    measured, predicted = {}, {}
    for row in evaluation["rows"]:
        pair = row["victim"], row["other"]
        measured.setdefault(row["campaign"], {})[pair] = row["measured"]
        predicted.setdefault(row["left_out"], {})[pair] = row["predicted"]
    return measured, predicted


def means(tables):
    """Each pair's mean over the tables that hold it."""
    found = {}
    for table in tables:
        for pair, value in table.items():
            found.setdefault(pair, []).append(value)
    return {pair: sum(values) / len(values) for pair, values in found.items()}


def add_games(rows, leave, gpu, of, demands):
    partner, matching = ({model: pair_games.Gap() for model in of} for _ in range(2))
    every = {}  # model -> each pair's prediction, the mean of those of its two families
    for model, evaluation in of.items():
        measured, predicted = tables_of(evaluation)
        family = {row["victim"]: row["victim_family"] for row in evaluation["rows"]}
        every[model] = means(predicted.values())
        for campaign, truth in sorted(measured.items()):
            pair_games.choose_partners(partner[model], campaign, truth,
                                       lambda job: every[model] if leave == "pair" else predicted.get(family[job], {}))
    for campaign, truth in sorted(measured.items()):
        pair_games.match_jobs(matching, campaign, truth, every)
    games = ((partner, "partner", f"choices of a partner among {pair_games.CANDIDATES}",
              {"pair": "without the pair", "family": "without the newcomer's family"}),
             (matching, "matching", f"perfect matchings of {pair_games.MATCHED} jobs",
              {"pair": "without the pair", "family": "without the family of one of its two jobs, mean of both"}))
    for gaps, name, what, without in games:
        rows.add(f"{name}_gap_{leave}", gpu, {model: gap.closed_pct() for model, gap in gaps.items()}, "%", "higher",
                 f"{next(iter(gaps.values())).draws} {what}: share of the gap in normalised throughput between a random and "
                 f"the best choice that is closed; each pair predicted {without[leave]}; {demands}")


def add_floor(rows, gpu, measured):
    """One campaign as the prediction of the other: what nobody can beat."""
    errors, gap = [], pair_games.Gap()
    for one, truth in sorted(measured.items()):
        for other, told in sorted(measured.items()):
            if one == other:
                continue
            errors += [abs(told[pair] - truth[pair]) / truth[pair] for pair in truth if pair in told]
            pair_games.choose_partners(gap, one, truth, lambda job, told=told: told)
    if not errors:
        return
    rows.add("slowdown_noise", gpu, {MODEL: 100 * sum(errors) / len(errors)}, "%", "lower",
             f"MAPE of one campaign as the prediction of another, {len(errors)} slowdowns that both measured")
    if gap.closed_pct() is not None:
        rows.add("partner_gap_noise", gpu, {MODEL: gap.closed_pct()}, "%", "higher",
                 f"{gap.draws} choices of a partner by what another campaign measured")


def observing():
    return [word for count in OBSERVED for word in ("--observe", str(count))]


def kept(admission):
    share = admission["kept_pct"]
    return "nobody admitted" if share is None else f"{share:.0f} % of the tenants admitted kept it"


def add_online(rows, evaluations, demands, what="family", where=""):
    """Errors and bounds of jobs of a family left out, after some of their co-locations were observed; `where` says on what."""
    found = {}
    for evaluation in evaluations:
        found.setdefault((short(evaluation["gpu"]), evaluation["observed"]), {})[evaluation["model"]] = evaluation
    for (gpu, observed), of in found.items():
        for key, suffix, beside in (("all", "", "jobs of its family among them"),
                                    ("residents", "_residents", "jobs of other families only")):
            scores = {model: e[key] for model, e in of.items() if e[key]}
            if not scores:
                continue
            protocol = (f"{next(iter(scores.values()))['questions']} slowdowns in the other pairs of a job without whose family "
                        f"the model was trained{where}, {beside}, after {observed} of its co-locations were observed with "
                        f"5 % noise; {demands}")
            for field, name, better in (("mape_pct", "mape", "lower"), ("covered_pct", "coverage", "higher"),
                                        ("slack_pct", "slack", "lower")):
                rows.add(f"slowdown_{name}_{what}_online{observed}{suffix}", gpu,
                         {m: s["after"][field] for m, s in scores.items()}, "%", better, protocol,
                         {m: f"before {s['before'][field]:.3g} %" for m, s in scores.items()})
            for at, bound in enumerate(BOUNDS):
                of_bound = {model: s["after"]["admission"][at] for model, s in scores.items()}
                rows.add(f"slowdown_admissible_{100 * bound:.0f}_{what}_online{observed}{suffix}", gpu,
                         {m: a["admitted_pct"] for m, a in of_bound.items()}, "%", "higher",
                         f"of the pairs both of whose slowdowns are truly at most {bound:g}, those whose bounds (p = 0.9) are; "
                         f"{protocol}", {m: f"truly {a['truly_pct']:.0f} % of the pairs; {kept(a)}" for m, a in of_bound.items()})


def judge(horus, table, jobs, suffix, bundle, demands, smoke):
    rows, floors_due = Rows(suffix), True
    for leave in LEAVES[:1] if smoke else LEAVES:
        by_gpu = {}
        for evaluation in evaluate(horus, table, jobs, ("--leave", leave, "--rows"), bundle, SMOKE_MODELS if smoke else ()):
            by_gpu.setdefault(evaluation["gpu"], {})[evaluation["model"]] = evaluation
        names = [short(gpu) for gpu in by_gpu]
        for gpu, of in by_gpu.items():
            name = short(gpu) if names.count(short(gpu)) == 1 else gpu
            add_errors(rows, leave, name, of, demands)
            if leave in GAMES:
                add_games(rows, leave, name, of, demands)
            if floors_due:
                add_floor(rows, name, tables_of(next(iter(of.values())))[0])
        floors_due = floors_due and not by_gpu
    if smoke:
        return rows.rows
    add_online(rows, evaluate(horus, table, jobs, observing(), bundle, ()), demands)
    add_unseen_cards(rows, horus, table, jobs, bundle, demands)
    return rows.rows


def add_unseen_cards(rows, horus, table, jobs, bundle, demands):
    """As add_online, where training has not seen the GPU type either."""
    left_out = ("--leave-gpu", *observing())
    settled = (*left_out, "--settled", str(SETTLED))
    for made_up in (False, True):
        path = light_card(table, jobs.parent) if made_up else table
        for how, name in ((left_out, "gpu"), (settled, f"gpu_settled{SETTLED}")):
            evaluations = evaluate(horus, path, jobs, how, bundle, (MODEL,))
            where = " nor on that GPU type"
            if how == settled:
                where += f", where {SETTLED} co-locations of other jobs were observed"
            if made_up:
                last = evaluations[-1]["gpu"] if evaluations else ""
                evaluations = [evaluation for evaluation in evaluations if evaluation["gpu"] == last]
                name, where = f"made_up_{name}", f"{where} (made up: {LIGHT:g} of what sharing costs on {last})"
            add_online(rows, evaluations, demands, name, where)


def light_card(table, folder):
    """The table with what sharing costs on its last GPU type scaled by LIGHT."""
    with table.open(newline="", encoding="utf-8") as file:
        measured = list(csv.DictReader(file))
    last = max(row["gpu"] for row in measured)
    for row in measured:
        for side in ("slowdown_a", "slowdown_b"):
            if row["gpu"] == last and row[side]:
                row[side] = f"{1 + LIGHT * (float(row[side]) - 1):.6f}"
    path = folder / f"light_{table.name}"
    pairs.write(path, pairs.PAIR_COLUMNS, measured)
    return path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line")
    parser.add_argument("--data", help="folder with tables of measured pairs and of measured runs")
    parser.add_argument("--smoke", action="store_true", help="pairs left out only, two models")
    parser.add_argument("--horus", default=str(ROOT / "build" / "release" / "bin" / "horus"))
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tables = pairs.convert_all(pathlib.Path(arguments.data), folder / "pairs") if arguments.data else []
        if tables:
            runs = datasets.convert_all(pathlib.Path(arguments.data), folder / "runs")
            nets = set().union(*(column(jobs, "note") for _, jobs in tables))
            bundle, demands = train_demands(arguments.horus, runs, nets, folder)
        for table, jobs in tables:
            suffix = "" if len(tables) == 1 else "_" + table.stem.removesuffix("_pairs")
            rows += judge(arguments.horus, table, jobs, suffix, bundle, demands, arguments.smoke)
    if not rows:
        print("interference: SKIPPED: no table of measured pairs under --data", file=sys.stderr)
    pathlib.Path(arguments.rows).write_text("".join(json.dumps(r) + os.linesep for r in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
