#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted against measured step times of today's nets, training and inference, from their graphs.

Takes every table under --data whose header names a net, an image size, a batch and a step time, and the graphs of its nets that
bench/quality/graphs/measured.py exported to --graphs. Rows that were compiled, or whose net has no graph, are left out.
A protocol is what a table was measured under: mode, GPU, memory layout and release of the framework.

bundle    the predictor that the command brings, its bound beside it
roofline  without any fitted constant (--bundle none)
classes   the roofline's time of each class of operators times a constant of the class, fitted to the other families. It says
          what such constants would give, not what is shipped. A convolution's class is what limits it, and whether it does
          less than 20 FLOPs a byte, as depthwise ones do

Families in the column `held_by` are kept for a later judgement: nothing is fitted to them, and they are not counted here.
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

import datasets

HEADER = {"net", "family", "gpu", "mode", "layout", "compiled", "torch", "batch", "image_size", "step_time_ms", "held_by"}
GPUS = {"RTX 3090": "rtx-3090", "RTX 4090": "rtx-4090"}
MODES = {"train": ("training", "train"), "infer": ("inference", "eval")}  # of a table: of the command, of the index
NEAR = 1.25           # the share of rows that is predicted within this factor
DENSE_FLOPS_A_BYTE = 20  # chosen: between depthwise convolutions and others
LEAST_SHARE, LEAST_ROWS = 0.02, 4  # a class has its own constant where that many rows spend so much of the step in it; chosen
HELD = 0.03           # weight that holds the logarithm of a constant at 0, beside 1 for a row; chosen
ROUNDS = 60           # of Gauss and Newton's method
SMOKE = 12            # rows


def graphs_of(folder):
    """(net, image size, mode of the index) -> file."""
    index = folder / "index.csv"
    if not index.exists():
        return {}
    with index.open(newline="", encoding="utf-8") as file:
        return {(r["net"], r["image_size"], r["mode"]): folder / r["file"] for r in csv.DictReader(file) if r["accepted"] == "1"}


def inspect(horus, graph, row, *more):
    mode = MODES[row["mode"]][0]
    framework = "pytorch-1" if row["torch"].startswith("1.") else "pytorch"
    command = [horus, "inspect", graph, "--json", "--batch", row["batch"], "--mode", mode, "--precision", "amp", "--optimizer",
               "momentum", "--framework", framework, "--gpu", GPUS[row["gpu"]], *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["gpus"][0]


def class_of(operator):
    kind = operator["op_type"]
    if kind != "Conv":
        return kind
    flops = operator["forward_flops"] + operator["backward_flops"]
    dense = flops >= DENSE_FLOPS_A_BYTE * operator["bytes"]
    return f"{kind}, {operator['bound_by']}{'' if dense else ', sparse'}"


class Case:
    """A measured row, in microseconds, and what is predicted of it."""

    def __init__(self, horus, graph, row):
        self.family, self.measured = row["family"], 1e3 * float(row["step_time_ms"])
        shipped = inspect(horus, graph, row, "--top", "0")
        self.bundle, self.upper = shipped["step_time_us"], shipped["step_time_upper_us"]
        plain = inspect(horus, graph, row, "--top", "100000", "--bundle", "none")
        self.roofline = plain["step_time_us"]
        self.classes = collections.Counter()
        for operator in plain["operators"]:
            self.classes[class_of(operator)] += operator["time_us"]
        self.rest = max(0.0, self.roofline - sum(self.classes.values()))  # loss, optimiser, host, copies


def solve(matrix, right):
    """Gauss's elimination; the matrix is positive definite."""
    n = len(right)
    rows = [list(matrix[i]) + [right[i]] for i in range(n)]
    for i in range(n):
        for j in range(i + 1, n):
            factor = rows[j][i] / rows[i][i]
            for k in range(i, n + 1):
                rows[j][k] -= factor * rows[i][k]
    out = [0.0] * n
    for i in reversed(range(n)):
        out[i] = (rows[i][n] - sum(rows[i][k] * out[k] for k in range(i + 1, n))) / rows[i][i]
    return out


class Constants:
    """Logarithms of one constant a class, of the other classes together and of the rest."""

    def __init__(self, cases):
        spent = collections.Counter(name for case in cases for name, us in case.classes.items() if us > LEAST_SHARE * case.measured)
        self.names = sorted(name for name, rows in spent.items() if rows >= LEAST_ROWS)
        self.logs = [0.0] * (len(self.names) + 2)
        times = [self.times(case) for case in cases]
        for _ in range(ROUNDS):
            step = self.step(times, [case.measured for case in cases])
            self.logs = [log + max(-0.5, min(0.5, move)) for log, move in zip(self.logs, step)]
            if max(map(abs, step)) < 1e-6:
                break

    def times(self, case):
        own = [case.classes[name] for name in self.names]
        return own + [sum(case.classes.values()) - sum(own), case.rest]

    def step(self, times, measured):
        """Of the least squares of ln(measured / predicted), the logarithms held near 0."""
        n = len(self.logs)
        matrix = [[HELD * (i == j) for j in range(n)] for i in range(n)]
        right = [-HELD * log for log in self.logs]
        for row, wanted in zip(times, measured):
            parts = [us * math.exp(log) for us, log in zip(row, self.logs)]
            total = sum(parts)
            shares, off = [part / total for part in parts], math.log(wanted / total)
            for i in range(n):
                right[i] += shares[i] * off
                for j in range(n):
                    matrix[i][j] += shares[i] * shares[j]
        return solve(matrix, right)

    def predict(self, case):
        return sum(us * math.exp(log) for us, log in zip(self.times(case), self.logs))


def left_out(cases):
    predicted = {}
    for family in sorted({case.family for case in cases}):
        constants = Constants([case for case in cases if case.family != family])
        predicted.update({id(case): constants.predict(case) for case in cases if case.family == family})
    return [predicted[id(case)] for case in cases]


def judge(name, cases):
    protocol = f"{len(cases)} rows of {len({case.family for case in cases})} families"
    rows = []

    def add(kind, predicted, told):
        ratios = [p / case.measured for p, case in zip(predicted, cases)]
        rows.append({"metric": f"step_time_mape_{kind}_{name}", "value": 100 * statistics.mean(abs(r - 1) for r in ratios),
                     "unit": "%", "aim": None, "better": "lower", "baseline": f"median predicted / measured {statistics.median(ratios):.2f}",
                     "protocol": f"{protocol}; {told}"})
        rows.append({"metric": f"step_time_near_{kind}_{name}", "value": 100 * statistics.mean(1 / NEAR <= r <= NEAR for r in ratios),
                     "unit": "%", "aim": None, "better": "higher", "baseline": "", "protocol": f"{protocol}; share within x{NEAR}; {told}"})

    add("bundle", [case.bundle for case in cases], "as shipped")
    add("roofline", [case.roofline for case in cases], "nothing fitted")
    if len({case.family for case in cases}) > 1:
        add("classes", left_out(cases), "a constant a class of operators, a family left out")
    rows.append({"metric": f"step_time_bound_kept_{name}", "value": 100 * statistics.mean(case.measured <= case.upper for case in cases),
                 "unit": "%", "aim": None, "better": "higher",
                 "baseline": f"median bound / measured {statistics.median(case.upper / case.measured for case in cases):.1f}",
                 "protocol": f"{protocol}; as shipped"})
    return rows


def main():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "horus" / "graphs"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line")
    parser.add_argument("--data", help="folder with tables of step times")
    parser.add_argument("--graphs", type=pathlib.Path, default=cache, help="folder of bench/quality/graphs/measured.py")
    parser.add_argument("--smoke", action="store_true", help=f"the first {SMOKE} rows of a protocol")
    parser.add_argument("--horus", default=datasets.ROOT / "build" / "release" / "bin" / "horus")
    arguments = parser.parse_args()
    graphs, protocols = graphs_of(arguments.graphs), collections.defaultdict(list)
    for path in sorted(pathlib.Path(arguments.data).rglob("*.csv")) if arguments.data else []:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            if not HEADER <= set(reader.fieldnames or []):
                continue
            for row in reader:
                graph = graphs.get((row["net"], row["image_size"], MODES[row["mode"]][1]))
                if graph and row["compiled"] == "0" and not row["held_by"] and row["gpu"] in GPUS:
                    protocols["_".join((row["mode"], GPUS[row["gpu"]], row["layout"], row["torch"]))].append((graph, row))
    rows = []
    for name, found in sorted(protocols.items()):
        found = found[:SMOKE] if arguments.smoke else found
        rows += judge(name, [Case(arguments.horus, graph, row) for graph, row in found])
    if not rows:
        print("steps: SKIPPED: no tables of step times under --data, or no graphs of their nets under --graphs", file=sys.stderr)
    pathlib.Path(arguments.rows).write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
