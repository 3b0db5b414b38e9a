#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted against measured speed of jobs on slices of a GPU, with measured and with predicted utilisation.

Takes every table under --data whose header names a model, a batch, a number of MIG slices and a median iteration time, and
the utilisation from the tables of the same GPU that datasets.py knows. Speed = iteration time on the most slices / on fewer.
The rules:

share      speed = s, the slice's share of the compute
capacity   speed = min(1, s / u), u the busy share of the whole GPU
scaling    speed = (1 + w^3 (1/s'^3 - 1))^(-1/3), w = min(1, a u + b m), m the share of the memory bandwidth, s' the geometric mean
           of s and the slice's share of the memory: what src/interference/laws.h does with the constants below; `left_out`
           fits a and b to the other nets; from a graph, the w that laws.h says
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

import datasets
import interference

BUSY, BANDWIDTH = 0.4, 1.45  # as kBusyScaling and kBandwidthScaling of src/interference/laws.h
SLICES, MEMORY = 7, {1: 1 / 8, 2: 2 / 8, 3: 4 / 8, 4: 4 / 8}  # of the compute, and with so many of them of the memory
GRID = [(a / 20, b / 20) for a in range(0, 21) for b in range(0, 61)]
HEADER = {"model", "batch", "mig_gpc", "median_iter_s"}
HOW = {"built_in": "utilisation predicted by the built-in bundle, which may have seen these runs",
       "unseen": "utilisation predicted by bundles trained without the net"}
UTILISATION = {"model", "batch", "gpu_util_pct", "gpu_mem_util_pct"}


class Point:
    """One measured speed: net, share of the compute, speed, busy share and bandwidth share; w where laws.h says it of a graph."""

    def __init__(self, run, share, speed, busy, bandwidth, work=None):
        self.run, self.share, self.speed, self.busy, self.bandwidth, self.work = run, share, speed, busy, bandwidth, work


def share_rule(point):
    return point.share


def capacity_rule(point):
    return min(1.0, point.share / point.busy)


def scaling_rule(point, constants=(BUSY, BANDWIDTH)):
    scaling = min(1.0, constants[0] * point.busy + constants[1] * point.bandwidth) if point.work is None else point.work
    memory = MEMORY[round(SLICES * point.share)]
    return (1 + scaling**3 * ((point.share * memory) ** -1.5 - 1)) ** (-1 / 3)


def error(points, rule):
    return sum(abs(rule(p) - p.speed) for p in points) / len(points)


def left_out(points):
    """Error with constants fitted to the other nets, and the least and greatest of them."""
    total, fits = 0.0, []
    for net in sorted({p.run[0] for p in points}):
        others = [p for p in points if p.run[0] != net]
        fits.append(min(GRID, key=lambda c: error(others, lambda p: scaling_rule(p, c))))
        total += sum(abs(scaling_rule(p, fits[-1]) - p.speed) for p in points if p.run[0] == net)
    return total / len(points), fits


def tables(data, columns):
    """Path -> rows of the tables with those columns."""
    found = {}
    for path in sorted(pathlib.Path(data).rglob("*.csv")):
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            if columns <= set(reader.fieldnames or []):
                found[path] = list(reader)
    return found


def measured(path, rows, data):
    """Points with the measured utilisation of the same GPU."""
    utilisation = {}
    for other, runs in tables(data, UTILISATION).items():
        if datasets.gpu_in(other.stem) == datasets.gpu_in(path.stem):
            utilisation.update({(r["model"], r["batch"]): r for r in runs})
    most = max(int(r["mig_gpc"]) for r in rows)
    whole = {(r["model"], r["batch"]): float(r["median_iter_s"]) for r in rows if int(r["mig_gpc"]) == most}
    points = []
    for row in rows:
        run = (row["model"], row["batch"])
        if int(row["mig_gpc"]) < most and run in whole and run in utilisation:
            points.append(Point(run, int(row["mig_gpc"]) / most, whole[run] / float(row["median_iter_s"]),
                                float(utilisation[run]["gpu_util_pct"]) / 100,
                                float(utilisation[run]["gpu_mem_util_pct"]) / 100))
    return points


def inspect(horus, bundle, run, gpu):
    net, dims = datasets.MISO[run[0]]
    command = [horus, "inspect", datasets.MODELS / "graphs" / f"{net}.onnx", "--batch", run[1], "--optimizer", "adam",
               "--framework", "tensorflow", "--precision", "tf32", "--gpu", gpu, "--top", "0", "--json", *bundle]
    for dim in filter(None, dims.split(";")):
        command += ["--dim", dim]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["gpus"][0]


def predicted(points, gpu, horus, data):
    """Known points by how they were predicted: by the built-in bundle, and by one for each net that has not seen it."""
    known = [p for p in points if p.run[0] in datasets.MISO]
    if not known or gpu.startswith("opaque"):
        return {}
    runs = sorted({p.run for p in known})
    built_in = {run: inspect(horus, [], run, gpu) for run in runs}
    unseen = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        sets = datasets.convert_all(pathlib.Path(data), folder / "sets")
        for name in sorted({run[0] for run in runs}):
            bundle, _ = interference.train_demands(horus, sets, {datasets.MISO[name][0]}, folder)
            if not bundle:
                return {"built_in": with_demands(known, built_in)}
            unseen.update({run: inspect(horus, bundle, run, gpu) for run in runs if run[0] == name})
    return {"built_in": with_demands(known, built_in), "unseen": with_demands(known, unseen)}


def with_demands(points, demands):
    share = lambda p, key: demands[p.run][key] / 100
    return [Point(p.run, p.share, p.speed, share(p, "gpu_util_pct"), share(p, "mem_bw_util_pct"),
                  demands[p.run]["work_share"]) for p in points]


def judge(name, points, how):
    capacity, share = error(points, capacity_rule), error(points, share_rule)
    beside = f"capacity rule {capacity:.3f}, speed = share {share:.3f}"
    count = f"{len(points)} points of {len({p.run[0] for p in points})} nets; {how}"
    row = lambda metric, value, baseline, protocol: {
        "metric": f"{metric}_{name}", "value": value, "unit": "of the full speed", "aim": None, "better": "lower",
        "baseline": baseline, "protocol": protocol}
    rows = [
        row("mig_speed_error_share", share, "", f"speed = share; {count}"),
        row("mig_speed_error_capacity", capacity, f"speed = share {share:.3f}", f"min(1, share / busy); {count}"),
        row("mig_speed_error", error(points, scaling_rule), beside, f"as src/interference/laws.h; {count}"),
    ]
    if points[0].work is None:  # of a graph nothing is fitted
        fitted, fits = left_out(points)
        span = ", ".join(f"{symbol} {min(values):.2f} to {max(values):.2f}" for symbol, values in zip("ab", zip(*fits)))
        rows.append(row("mig_speed_error_left_out", fitted, beside, f"one net left out of the fit of a and b ({span}); {count}"))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line")
    parser.add_argument("--data", help="folder with tables of iteration times on MIG slices and of utilisation")
    parser.add_argument("--smoke", action="store_true", help="measured utilisation only")
    parser.add_argument("--horus", default=str(datasets.ROOT / "build" / "release" / "bin" / "horus"))
    arguments = parser.parse_args()
    rows = []
    for path, table in (tables(arguments.data, HEADER) if arguments.data else {}).items():
        points = measured(path, table, arguments.data)
        gpu = datasets.gpu_in(path.stem)
        if len({p.run[0] for p in points}) < 3:
            continue
        rows += judge(f"measured_{gpu}", points, "measured utilisation")
        if not arguments.smoke:
            of = predicted(points, gpu, arguments.horus, arguments.data)
            if of:
                rows += judge(f"measured_{gpu}_same_nets", [p for p in points if p.run[0] in datasets.MISO],
                              "measured utilisation, the nets that have a graph")
            for how, known in of.items():
                rows += judge(f"predicted_{gpu}_{how}", known, HOW[how])
    if not rows:
        print("mig: SKIPPED: no tables of speeds on slices and of utilisation under --data", file=sys.stderr)
    pathlib.Path(arguments.rows).write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
