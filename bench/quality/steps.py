#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted against measured step times of today's nets, training and inference, from their graphs.

Takes every table of step times under --data that datasets.py turns into a dataset with graphs (those of nets that
measured.py and its like exported lie under --graphs), all of them as one training set, and trains without one family, then without
one GPU type at a time. Rows are judged by campaign: table, mode, GPU, layout and release of the framework.

kept     share of the rows at or below their bound of 90 %, and how far the median bound lies above the measurement
flagged  error of rows that the predictor calls outside, over that of all others

--rounds 0 judges the fitted constants without trees, in a twentieth of the time. --folds N leaves out N-ths of the families together,
the largest apart: quicker, but so few groups can promise no bound worth having.
"""
import argparse
import collections
import csv
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import datasets

NEAR = 1.25  # the share of rows that is predicted within this factor
LEAVES = {"family": "lofo", "gpu": "logo"}  # what is left out -> ending of the metric
SMOKE = 300  # rows, spread over the table
# Tables of which the built-in bundle holds nothing: single operators are no steps, and loaders are part of Gavel's.
LEFT_OUT = ("neusight_ops", "gavel")
# Beginning of a campaign -> aim of its MAPE with a family left out.
AIMS = {"timm train 3090 1.12 nchw": 11, "timm train 3090 1.12 nhwc": 24, "timm infer": 15, "nvidia": 20, "neusight_e2e": 15}
COMPILED = 16


def rows_of(tables, smoke):
    """Rows that measure step times and have a graph, and the columns that any of them has."""
    rows, columns = [], []
    for table in tables:
        if table.stem.startswith(LEFT_OUT):
            continue
        with table.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row.get("step_time_us") and row.get("graph") and not (row.get("note") or "").startswith("host:"):
                    rows.append({**row, "campaign": row.get("campaign") or table.stem})
                    columns += [name for name in row if name not in columns]
    return rows[:: max(1, len(rows) // SMOKE)] if smoke else rows, columns


def deal(rows, folds):
    """Makes families of one fold one family."""
    sizes = collections.Counter(row["family"] for row in rows)
    fold = {family: f"fold {i % folds}" for i, (family, _) in enumerate(sorted(sizes.items(), key=lambda one: (-one[1], one[0])))}
    for row in rows:
        row["family"] = fold[row["family"]]


def evaluate(horus, table, leave, rounds):
    command = [horus, "evaluate", "--data", str(table), "--leave", leave, "--rounds", str(rounds), "--json", "--rows"]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)["evaluations"]
    return next(e for e in found if e["quantity"] == "step_time_us")


def aim_of(campaign, leave):
    if leave != "family":
        return 15
    if "compiled" in campaign:
        return COMPILED
    return next((aim for start, aim in AIMS.items() if campaign.startswith(start)), None)


def judge(name, rows, evaluation, leave):
    ending = LEAVES[leave]
    ratios = [r["predicted"] / r["measured"] for r in rows]
    upper = [r["upper"] / r["measured"] for r in rows]
    told = f"{len(rows)} runs of {len({r['net'] for r in rows})} nets, each predicted without its {leave}"
    roofline = statistics.mean(abs(r["baselines"]["roofline"] / r["measured"] - 1) for r in rows)
    trees = statistics.mean(abs(r["baselines"]["horus_six"] / r["measured"] - 1) for r in rows)
    key = name.replace(" ", "_")
    return [
        {"metric": f"step_time_mape_{ending}_{key}", "value": 100 * statistics.mean(abs(r - 1) for r in ratios), "unit": "%",
         "aim": aim_of(name, leave), "better": "lower",
         "baseline": f"roofline {100 * roofline:.0f}; trees on six features {100 * trees:.0f}", "protocol": told},
        {"metric": f"step_time_near_{ending}_{key}", "value": 100 * statistics.mean(abs(math.log(r)) <= math.log(NEAR) for r in ratios),
         "unit": "%", "aim": None, "better": "higher", "baseline": f"median predicted / measured {statistics.median(ratios):.2f}",
         "protocol": f"{told}; share within x{NEAR}"},
        {"metric": f"step_time_kept_{ending}_{key}", "value": 100 * statistics.mean(u >= 1 for u in upper), "unit": "%", "aim": 90,
         "better": "higher", "baseline": f"median bound {100 * (statistics.median(upper) - 1):.0f} % above",
         "protocol": f"{told}; promised {evaluation['coverage_promised_pct']:.0f} %"}]


def flagged(evaluation, leave):
    errors = collections.defaultdict(list)
    for r in evaluation["rows"]:
        errors[r["outside"]].append(abs(r["predicted"] / r["measured"] - 1))
    if not errors[True] or not errors[False]:
        return []
    return [{"metric": f"step_time_flagged_{LEAVES[leave]}", "value": statistics.mean(errors[True]) / statistics.mean(errors[False]),
             "unit": "x", "aim": 1.5, "better": "higher", "baseline": "",
             "protocol": f"error of {len(errors[True])} rows called outside over that of {len(errors[False])} others"}]


def main():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "horus" / "graphs"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line")
    parser.add_argument("--data", help="folder with tables of step times")
    parser.add_argument("--graphs", type=pathlib.Path, action="append", help="folder of exported graphs; may be repeated")
    parser.add_argument("--rounds", type=int, default=100, help="trees at most")
    parser.add_argument("--folds", type=int, default=0, help="of whole families; 0: one family at a time")
    parser.add_argument("--smoke", action="store_true", help=f"about {SMOKE} rows, without trees")
    parser.add_argument("--horus", default=datasets.ROOT / "build" / "release" / "bin" / "horus")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        tables = datasets.convert_all(pathlib.Path(arguments.data), out, arguments.graphs or [cache]) if arguments.data else []
        found, columns = rows_of(tables, arguments.smoke)
        if arguments.folds:
            deal(found, arguments.folds)
        together = out / "steps.csv"
        with together.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(found)
        for leave in LEAVES if found else ():
            evaluation = evaluate(arguments.horus, together, leave, 0 if arguments.smoke else arguments.rounds)
            by_campaign = collections.defaultdict(list)
            for judged in evaluation["rows"]:
                by_campaign[found[int(judged["where"].rsplit(" ", 1)[1]) - 1]["campaign"]].append(judged)
            for name, judged in sorted(by_campaign.items()):
                rows += judge(name, judged, evaluation, leave)
            rows += flagged(evaluation, leave)
    if not rows:
        print("steps: SKIPPED: no tables of step times under --data, or no graphs of their nets under --graphs", file=sys.stderr)
    pathlib.Path(arguments.rows).write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
