#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a site gains from its own runs: error and bound before and after `horus calibrate` and `horus train`.

A site is a campaign of the tables under --data. A bundle is trained without all of its rows, then moved to the site by
4, 8, 30 and 100 of its runs (`horus train` takes 8 or more), and judged on others: half of the nets, drawn anew each
time, give the runs, the rest are judged, so that the site never ran a net that is judged. Sites with too few runs for a
number lack its row.

step time   timm on RTX 4090, eager (no run on that GPU type is trained on); NVIDIA's tables (V100, A100, T4)
memory      SchedTune (five GPUs); xMem (three GPUs); Qwen (two nets with LoRA)
"""
import argparse
import csv
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import datasets

RUNS, LEAST_TRAINED = (4, 8, 30, 100), 8
DRAWS, MOST_JUDGED = 5, 150
SMOKE_ROWS = 120  # of the bundle, and of a site
MEMORY, STEP_TIME = "mem_mib", "step_time_us"
# Site -> quantity, table, beginning of its campaigns, what their names may not hold.
SITES = {"timm_4090": (STEP_TIME, "timm", "timm infer 4090", "compiled"), "nvidia": (STEP_TIME, "nvidia_examples", "", None),
         "schedtune": (MEMORY, "schedtune_mem", "", None), "xmem": (MEMORY, "xmem", "", None), "qwen": (MEMORY, "qwen_a100", "", None)}
LEFT_OUT = ("salus_tf_mem", "gavel_isolated", "neusight_ops")  # as of the built-in bundle


def rows_of(tables):
    """Rows with a graph, of all tables; paths hold from anywhere."""
    rows = []
    for table in tables:
        if table.stem in LEFT_OUT:
            continue
        with table.open(newline="", encoding="utf-8") as file:
            rows += [{**row, "table": table.stem, "graph": str((table.parent / row["graph"]).resolve())}
                     for row in csv.DictReader(file)]
    return rows


def write(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, datasets.COLUMNS, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def call(horus, *words):
    done = subprocess.run([horus, *map(str, words)], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"site: horus {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def errors(horus, bundle, judged, quantity):
    """[(predicted / measured, bound / measured)]"""
    found = json.loads(call(horus, "evaluate", "--data", judged, "--bundle", bundle, "--json", "--rows"))["evaluations"]
    rows = next(e for e in found if e["quantity"] == quantity)["rows"]
    return [(r["predicted"] / r["measured"], r["upper"] / r["measured"]) for r in rows]


def split(rows, draw):
    """(runs to learn from, in random order; rows judged) of different nets."""
    source = random.Random(draw)
    nets = sorted({row["net"] for row in rows})
    source.shuffle(nets)
    own = set(nets[: (len(nets) + 1) // 2])
    shuffled = source.sample(rows, len(rows))
    return [r for r in shuffled if r["net"] in own], [r for r in shuffled if r["net"] not in own][:MOST_JUDGED]


def measure(horus, name, rows, rounds, out, smoke):
    quantity, table, start, without = SITES[name]
    measured = [{**row, MEMORY: "", STEP_TIME: "", quantity: row[quantity]} for row in rows if row[quantity]]
    held = [row for row in measured if row["table"] == table and row["campaign"].startswith(start)]
    site = [row for row in held if without is None or without not in row["campaign"]]
    others = [row for row in measured if row["table"] != table or not row["campaign"].startswith(start)]
    if not site or not others:
        return []
    if smoke:
        site, others = (some[:: max(1, len(some) // SMOKE_ROWS)] for some in (site, others))
    base = out / "base.hbundle"
    call(horus, "train", "--data", write(out / "others.csv", others), "--bundle", "none", "--rounds", rounds, "--out", base)
    found = {}
    for draw in range(1 if smoke else DRAWS):
        runs, judged = split(site, draw)
        judged = write(out / "judged.csv", judged)
        found.setdefault(("before", 0), []).extend(errors(horus, base, judged, quantity))
        for count in RUNS[:2] if smoke else RUNS:
            if len(runs) < count:
                continue
            some, moved = write(out / "runs.csv", runs[:count]), out / "moved.hbundle"
            call(horus, "calibrate", "--data", some, "--bundle", base, "--out", moved)
            found.setdefault(("calibrate", count), []).extend(errors(horus, moved, judged, quantity))
            if count < LEAST_TRAINED:
                continue
            call(horus, "train", "--data", some, "--bundle", base, "--rounds", rounds, "--out", moved)
            found.setdefault(("train", count), []).extend(errors(horus, moved, judged, quantity))
    return [row for (how, count), ratios in found.items() for row in rows_for(name, how, count, ratios, len(site))]


def rows_for(name, how, count, ratios, of):
    ending = f"{name}_{how}_{count}" if count else f"{name}_{how}"
    short = "memory" if SITES[name][0] == MEMORY else "step_time"
    told = f"{len(ratios)} predictions of runs of nets that the site did not run, of {of}; bundle trained without the site"
    kept = 100 * statistics.mean(upper >= 1 for _, upper in ratios)
    row = {"unit": "%", "aim": None, "baseline": "", "protocol": told}
    return [{"metric": f"site_{short}_mape_{ending}", "value": 100 * statistics.mean(abs(r - 1) for r, _ in ratios),
             "better": "lower", **row},
            {"metric": f"site_{short}_kept_{ending}", "value": kept, "better": "higher", **row,
             "baseline": f"median bound {100 * (statistics.median(u for _, u in ratios) - 1):.0f} % above"}]


def main():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "horus" / "graphs"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line")
    parser.add_argument("--data", help="folder with tables of measured runs")
    parser.add_argument("--graphs", type=pathlib.Path, action="append", help="folder of exported graphs; may be repeated")
    parser.add_argument("--site", choices=SITES, action="append", help="only this one; may be repeated")
    parser.add_argument("--rounds", type=int, default=100, help="trees at most")
    parser.add_argument("--smoke", action="store_true", help=f"one draw of about {SMOKE_ROWS} rows, without trees")
    parser.add_argument("--horus", default=datasets.ROOT / "build" / "release" / "bin" / "horus")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        tables = datasets.convert_all(pathlib.Path(arguments.data), out, arguments.graphs or [cache]) if arguments.data else []
        found = rows_of(tables)
        for name in arguments.site or SITES:
            rounds = 0 if arguments.smoke else arguments.rounds
            rows += measure(arguments.horus, name, found, rounds, out, arguments.smoke)
    if not rows:
        print("site: SKIPPED: no site's table under --data, or no graphs of its nets", file=sys.stderr)
    pathlib.Path(arguments.rows).write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
