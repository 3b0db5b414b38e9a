#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Policies on measured speeds: work rate, makespan and completion times of every policy beside the bound of a linear program.

Truth is throughput files under --data (Gavel's layout), one GPU type at a time, with its own isolated speeds; jobs come
from the traces under --data. What policies believe is predicted: demands from graphs by a bundle that has seen no net of the
pairs, slowdowns by a model that has seen neither job's family on any GPU or in any campaign (`horus evaluate --predictions`).
Each table is one or several grids of `horus compare` (policy_grids.py) with the same jobs for every policy:

"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

import pairs
import policy_more
import policy_noise
import policy_packs
import policy_tables
from policy_grids import Inputs, Setting, speeds_under, traces_under

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SEEDS = 10
SIZES = {"": (64, 1000), "_512": (512, 8000)}  # suffix of the metric: GPUs, jobs
SMOKE_SEEDS, SMOKE_SIZE = 2, {"": (16, 80)}
TABLES = {**policy_tables.TABLES, **policy_more.TABLES, **policy_noise.TABLES, **policy_packs.TABLES, **policy_more.MIXED}
LARGE = tuple(policy_tables.TABLES)  # that are made of the large cluster too
REFERENCE = "v100"  # of mixed clusters: the type that the fewest GPUs of today fall below


def split(gpus, parts):
    """As even as can be, the first the largest."""
    return [gpus // parts + (1 if i < gpus % parts else 0) for i in range(parts)]


class Plan:
    """Which tables of which clusters, and where their grids are kept."""

    def __init__(self, arguments, folder):
        self.horus, self.data, self.folder = arguments.horus, pathlib.Path(arguments.data).resolve(), folder
        self.smoke, self.names = arguments.smoke, arguments.table or list(TABLES)
        self.types = arguments.type
        self.seeds = arguments.seeds or (SMOKE_SEEDS if self.smoke else SEEDS)
        sizes = SMOKE_SIZE if self.smoke else SIZES
        self.sizes = [size for size in sizes.items() if self.smoke or arguments.gpus in (None, size[1][0])]
        self.asked = bool(arguments.gpus)

    def rows(self):
        tables, traces = pairs.convert_all(self.data, self.folder / "pairs"), traces_under(self.data)
        speeds = speeds_under(self.data)
        if not tables or traces is None or not speeds:
            return
        inputs = Inputs(self.horus, self.data, self.folder, *tables[0])
        chosen = [one for one in speeds if not self.types or any(name in one[2] for name in self.types)]
        for suffix, (gpus, jobs) in self.sizes:
            for name in self.names:
                if suffix and not self.asked and name not in LARGE:
                    continue
                if name in policy_more.MIXED:
                    ordered = sorted(speeds, key=lambda one: REFERENCE not in one[2])
                    clusters = [(ordered, split(gpus, len(ordered)))] if len(ordered) > 1 else []
                else:
                    clusters = [([one], [gpus]) for one in (chosen[:1] if self.smoke else chosen)]
                for types, numbers in clusters:
                    setting = Setting(self.horus, inputs, traces, self.folder, types, numbers, jobs, self.seeds)
                    yield from TABLES[name](setting, suffix)


def main():
    described = "\n".join(f"  {name:<9} {' '.join(table.__doc__.split())}" for name, table in TABLES.items())
    parser = argparse.ArgumentParser(description=__doc__ + described, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line, as they come")
    parser.add_argument("--data", help="folder with throughput files, tables of pairs, tables of runs and traces")
    parser.add_argument("--smoke", action="store_true", help="every table on a small cluster of one GPU type, two seeds")
    parser.add_argument("--table", action="append", choices=list(TABLES), help="this table alone; may be repeated")
    parser.add_argument("--type", action="append", help="GPU types whose name holds this alone; may be repeated")
    parser.add_argument("--gpus", type=int, choices=[gpus for gpus, _ in SIZES.values()], help="clusters of this size alone")
    parser.add_argument("--seeds", type=int, help=f"instead of {SEEDS}")
    parser.add_argument("--keep", help="folder for the grids and their runs: the same command goes on where it was stopped")
    parser.add_argument("--horus", default=str(ROOT / "build" / "release" / "bin" / "horus"))
    arguments = parser.parse_args()
    found = False
    with tempfile.TemporaryDirectory() as name, open(arguments.rows, "w", encoding="utf-8") as file:
        folder = pathlib.Path(arguments.keep or name).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for row in Plan(arguments, folder).rows() if arguments.data else ():
            found = True
            file.write(json.dumps(row) + os.linesep)
            file.flush()
    if not found:
        print("policies: SKIPPED: no throughput files, pairs and traces under --data", file=sys.stderr)


if __name__ == "__main__":
    main()
