#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How much of exported graphs `horus inspect` understands, and how far its multiply-adds are from torch's count.

  survey.py --horus build/dev/bin/horus DIR...     every graph of DIR/exports.csv, at the sizes of its export

One line a graph that is not understood whole, then the counts; --all lists every graph, --csv FILE writes them.
"""
import argparse
import csv
import json
import pathlib
import re
import subprocess

BATCH, SECONDS = 2, 120  # BATCH as in export.py
NAMED = {"sequence": 64, "target": 32, "samples": 16000}
COLUMNS = ("file", "ops", "ops_known", "flops_share", "macs_ratio", "unknown", "error")
NEAR = 0.01  # multiply-adds within 1 % of torch's count


def inspect(horus, path, row, batch):
    command = [horus, "inspect", str(path), "--json", "--batch", str(batch)]
    command += ["--mode", "training" if row["mode"].startswith("train") else "inference"]
    named = set(re.findall(rb"sequence|target|samples", path.read_bytes())) if row["axes"] == "named" else ()
    for dim, size in NAMED.items():
        if dim.encode() in named and row["library"] == "transformers":
            command += ["--dim", f"{dim}={size}"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return dict(error=f"took longer than {SECONDS} s")
    if ran.returncode:
        return dict(error=ran.stderr.strip().replace("\n", " ")[:300])
    seen = json.loads(ran.stdout)
    coverage = seen["coverage"]
    counted = float(row["forward_macs"] or 0) * batch / BATCH
    return dict(ops=coverage["ops"], ops_known=coverage["ops_known"], flops_share=round(coverage["flops_share"], 4),
                macs_ratio=round(seen["forward_flops"] / 2 / counted, 4) if counted else "",
                unknown=" ".join(f"{u['op_type']}:{u['count']}" for u in coverage["unknown"]), error="")


def is_near(row):
    """Whether its multiply-adds are torch's; a ratio of 0 is no missing one."""
    return row["macs_ratio"] == "" or abs(row["macs_ratio"] - 1) <= NEAR


def survey(horus, folders, batch):
    for folder in folders:
        with (folder / "exports.csv").open(newline="") as source:
            for row in csv.DictReader(source):
                if row["file"]:
                    yield dict(file=row["file"], **inspect(horus, folder / row["file"], row, batch))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--horus", default="horus")
    parser.add_argument("--batch", type=int, default=BATCH, help="another size than that of the export")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--csv", type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    for row in survey(options.horus, options.folders, options.batch):
        rows.append(row)
        whole = not row.get("error") and row["ops"] == row["ops_known"] and is_near(row)
        if options.all or not whole:
            print("  ".join(f"{row.get(column, '')}" for column in COLUMNS), flush=True)
    if options.csv:
        with options.csv.open("w", newline="") as out:
            writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    read = [row for row in rows if not row.get("error")]
    share = lambda least: sum(row["flops_share"] >= least for row in read)
    near = sum(map(is_near, read))
    print(f"{len(rows)} graphs: {len(rows) - len(read)} refused, {sum(r['ops'] == r['ops_known'] for r in read)} "
          f"understood whole, {share(0.99)} at 99 % of the FLOPs and more, {len(read) - share(0.5)} below half, "
          f"{near} within 1 % of torch's multiply-adds")


if __name__ == "__main__":
    main()
