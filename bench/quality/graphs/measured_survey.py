#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How much of the graphs of measured.py `horus inspect` understands, and how far its counts are from the tables'.

  measured_survey.py --data DIR --cache DIR --horus build/dev/bin/horus       --csv FILE writes all that was seen

Names each graph that is refused, that holds operators without a rule, or of which parameters or multiply-adds are more
than 2 % from the table's and its rounding. The tables' multiply-adds, counted by fvcore, hold some of normalisations:
2 an element of a batch normalisation with known statistics, 5 of another. They are added to the products that `horus`
counts.
"""
import argparse
import collections
import json
import math
import pathlib
import subprocess

import measured

BATCH, SECONDS, NEAR = 64, 120, 0.02
ROUNDED = 0.005  # both columns have two decimals
WITH_STATISTICS = 5
PER_ELEMENT = {"BatchNormalization": 2, "LayerNormalization": WITH_STATISTICS, "InstanceNormalization": WITH_STATISTICS}
COLUMNS = ("net", "family", "image_size", "file", "ops", "ops_known", "unknown", "params_m", "params_m_table",
           "gmacs_products", "gmacs", "gmacs_table", "error")


def normalised(operator):
    """What fvcore counts of a normalisation, for one image."""
    kind, dims = operator["op_type"], [int(dim) for dim in operator["output_shape"].split("x") if dim.isdigit()]
    if kind not in PER_ELEMENT or not dims:
        return 0
    if dims[0] < BATCH:  # it standardises weights, by the statistics of what it is given
        return WITH_STATISTICS * math.prod(dims)
    return PER_ELEMENT[kind] * math.prod(dims) / BATCH


def inspect(horus, path):
    """What the command says of one graph."""
    command = [horus, "inspect", str(path), "--json", "--batch", str(BATCH), "--mode", "inference", "--top", "100000",
               "--gpu", "t4"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return dict(error=f"took longer than {SECONDS} s")
    if ran.returncode:
        return dict(error=ran.stderr.strip().replace("\n", " ")[:300])
    seen = json.loads(ran.stdout)
    coverage, products = seen["coverage"], seen["forward_flops"] / 2 / BATCH
    others = sum(map(normalised, seen["gpus"][0]["operators"]))
    return dict(ops=coverage["ops"], ops_known=coverage["ops_known"], params_m=seen["parameters"] / 1e6,
                gmacs_products=products / 1e9, gmacs=(products + others) / 1e9, error="",
                unknown=" ".join(f"{u['op_type']}:{u['count']}" for u in coverage["unknown"]))


def beside(net, seen):
    """The table's figures: of the rows that the graph may stand for those nearest to its parameters."""
    told = [params_m for rows in net.rows.values() for params_m, reparam in rows if not reparam]
    return dict(params_m_table=min(told, key=lambda told: abs(told - seen.get("params_m", 0))) if told else "",
                gmacs_table=net.gmacs or "")


def faults(row):
    """What is wrong with a graph, as (kind, words)."""
    if row["error"]:
        return [("refused", row["error"])]
    found = []
    if row["ops"] != row["ops_known"]:
        found.append(("operators without a rule", row["unknown"] or f"{row['ops'] - row['ops_known']} without shapes"))
    for column, kind in (("params_m", "parameters"), ("gmacs", "multiply-adds")):
        expected = row[column + "_table"]
        if expected and abs(row[column] - expected) > NEAR * expected + ROUNDED:
            found.append((f"{kind} off", f"expected {expected:g} ({column}), found {row[column]:.2f}"))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=pathlib.Path, metavar="DIR", help="of the tables")
    parser.add_argument("--cache", required=True, type=pathlib.Path, metavar="DIR", help="of the graphs")
    parser.add_argument("--horus", default="horus")
    parser.add_argument("--csv", type=pathlib.Path)
    options = parser.parse_args()
    nets = measured.read_tables(options.data)
    index = measured.read_rows(options.cache / "index.csv", measured.INDEX)
    rows, counts = [], collections.Counter()
    for key in sorted({(row["net"], row["image_size"]) for row in index} & nets.keys()):
        net = nets[key]
        seen = inspect(options.horus, options.cache / net.file)
        row = dict(net=net.name, family=net.family, image_size=net.size, file=net.file, **seen, **beside(net, seen))
        rows.append(row)
        wrong = faults(row)
        counts.update(kind for kind, _ in wrong)
        for kind, words in wrong:
            print(f"{net.name} {net.size}: {kind}: {words}", flush=True)
    if options.csv:
        measured.write_rows(options.csv, COLUMNS, rows)
    print(f"{len(rows)} graphs" + "".join(f"; {kind}: {count}" for kind, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
