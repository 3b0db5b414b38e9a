#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted against measured demand, for families, nets and GPU types that training has not seen.

Every table of measured runs under --data that datasets.py knows is turned into a dataset, and `horus evaluate` trains
without one group at a time: a family, a net, a GPU type, and last a tenth of the rows at random. Nets without a public
graph are named on stderr and left out.
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

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# What is left out -> ending of the metric.
LEAVES = {"family": "lofo", "model": "lomo", "gpu": "logo", "rows": "random"}
# Quantity -> beginning of the metric, the errors shown, and the aims of the nets and GPUs left out.
QUANTITIES = {
    "gpu_util_pct": ("util", {"rmsle": {"lomo": 0.22}}),
    "gpu_util_max_pct": ("util_max", {"rmsle": {}, "ratio": {"lomo": 0.5}}),
    "mem_bw_util_pct": ("mem_bw", {"rmsle": {}}),
    "mem_mib": ("memory", {"mape_pct": {"lomo": 5.0}}),
    "step_time_us": ("step_time", {"mape_pct": {"lomo": 25.0, "logo": 25.0}, "spearman": {"lomo": 0.95}}),
}
UNITS = {"rmsle": "log1p", "ratio": "of the constant's", "mape_pct": "%", "spearman": ""}


def evaluate(horus, table, leave, without=()):
    command = [horus, "evaluate", "--data", str(table), "--leave", leave, "--json", "--rows"]
    for net in without:
        command += ["--without", net]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"predict: {table.stem}, {leave} left out: {done.stderr.strip()}", file=sys.stderr)
        return []  # two groups are needed
    return json.loads(done.stdout)["evaluations"]


def rows_of(name, leave, evaluation):
    short, errors = QUANTITIES[evaluation["quantity"]]
    methods = {m["method"]: m for m in evaluation["methods"]}
    ending = LEAVES[leave]
    nets = len({r["net"] for r in evaluation["rows"]})
    protocol = (f"{evaluation['rows_measured']} runs of {nets} nets, each predicted without its {leave} "
                f"({evaluation['groups']})")
    rows = []
    for error, aims in errors.items():
        key = "rmsle" if error == "ratio" else error
        shown = {m: v[key] for m, v in methods.items() if v[key] is not None}
        if "horus" not in shown:
            continue
        value = shown["horus"] / shown["constant"] if error == "ratio" else shown["horus"]
        others = "; ".join(f"{m} {shown[m]:.3g}" for m in shown if m != "horus") if error != "ratio" else ""
        word = {"mape_pct": "mape"}.get(error, error)
        metric = f"{short}_{word}_{ending}_{name}" if error != "ratio" else f"util_rmsle_{ending}_{name}_ratio"
        rows.append({"metric": metric, "value": value, "unit": UNITS[error], "aim": aims.get(ending),
                     "better": "higher" if error == "spearman" else "lower", "baseline": others, "protocol": protocol})
    rows.append({"metric": f"{short}_coverage_{ending}_{name}", "value": evaluation["coverage_observed_pct"], "unit": "%",
                 "aim": None, "better": "higher", "baseline": f"promised {evaluation['coverage_promised_pct']:.0f} %",
                 "protocol": f"{protocol}; bound over truth by {evaluation['slack_pct']:.0f} % on average"})
    return rows


def host_nets(table):
    """Nets whose step does work on the host that no graph shows: judged with the others, and the others without them."""
    with table.open(newline="", encoding="utf-8") as file:
        return sorted({row["net"] for row in csv.DictReader(file) if row["note"].startswith("host:")})


def campaigns(name, table):
    """How much the same run differs between campaigns: nobody can predict better than that."""
    with table.open(newline="", encoding="utf-8") as file:
        times = {}
        for row in csv.DictReader(file):
            if row["step_time_us"] and row["campaign"]:
                key = (row["net"], row["batch"], row["gpu"])
                times.setdefault(key, {})[row["campaign"]] = float(row["step_time_us"])
    ratios = [abs(a - b) / a for of in times.values() if len(of) == 2 for a, b in (of.values(), list(of.values())[::-1])]
    if not ratios:
        return []
    return [{"metric": f"step_time_noise_{name}", "value": 100 * sum(ratios) / len(ratios), "unit": "%", "aim": None,
             "better": "lower", "baseline": "", "protocol": f"MAPE of one campaign as the prediction of the other, "
             f"{len(ratios) // 2} runs that both measured"}]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line")
    parser.add_argument("--data", help="folder with tables of measured runs")
    parser.add_argument("--smoke", action="store_true", help="nets left out only")
    parser.add_argument("--horus", default=str(ROOT / "build" / "release" / "bin" / "horus"))
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        tables = datasets.convert_all(pathlib.Path(arguments.data), pathlib.Path(folder)) if arguments.data else []
        for table in tables:
            word = table.stem.split("_")[0]
            name = word if [t.stem.split("_")[0] for t in tables].count(word) == 1 else table.stem
            for leave in ("model",) if arguments.smoke else LEAVES:
                for evaluation in evaluate(arguments.horus, table, leave):
                    rows += rows_of(name, leave, evaluation)
                for evaluation in evaluate(arguments.horus, table, leave, host_nets(table)) if host_nets(table) else ():
                    rows += rows_of(f"{name}_graph_only", leave, evaluation)
            rows += campaigns(name, table)
    if not rows:
        print("predict: SKIPPED: no table of measured runs under --data", file=sys.stderr)
    pathlib.Path(arguments.rows).write_text("".join(json.dumps(r) + os.linesep for r in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
