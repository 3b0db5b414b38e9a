#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What equal copies of a net cost each other under MPS on MIG instances, and how several add up.

Takes every table under --data whose header names a net, an instance size, a batch, a number of copies and a throughput per
copy. Slowdown = throughput of one copy alone / of each of several.

rules     from the slowdown of two copies to that of three and more: the excesses add up (what combine.h does), multiply, are
          a power of the number, or share the machine
law       excess of a pair = a + b e + c E^2 from the net's speeds alone on smaller instances, each net left out of the fit; the
          excesses add up. E is the exponent with which the speed grows from the smallest instance to this one, e that around
          this one; on the smallest instance E = 1 - d (1 - e)
"""
import argparse
import csv
import json
import math
import pathlib
import sys

HEADER = {"net", "mig_gpc", "batch", "copies", "ran", "throughput_per_copy"}
MOST_EXCESS = 1.05  # of a pair: taking turns, and a little for the switches; chosen
LAW = ((0.03, 0.2), (0.2, 0.1), (0.8, 0.1), (0.3, 0.1))  # where the search for a, b, c, d begins, and its first step


def rank(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0] * len(values)
    for place, index in enumerate(order):
        ranks[index] = place
    return ranks


def rank_correlation(first, second):
    a, b = rank(first), rank(second)
    mean = (len(a) - 1) / 2
    return sum((x - mean) * (y - mean) for x, y in zip(a, b)) / sum((x - mean) ** 2 for x in a)


class Table:
    def __init__(self, rows):
        speeds = {(r["net"], int(r["mig_gpc"]), int(r["batch"]), int(r["copies"])): float(r["throughput_per_copy"])
                  for r in rows if r["ran"] == "1"}
        self.alone = {key[:3]: speed for key, speed in speeds.items() if key[3] == 1}
        self.slowdown = {key: self.alone[key[:3]] / speed for key, speed in speeds.items() if key[3] > 1}
        self.nets = sorted({key[0] for key in self.slowdown})
        self.exponents = {key: self.exponents_of(*key) for key in self.alone}

    def exponents_of(self, net, size, batch):
        """(e, E) of one copy alone, within 0 to 1; E None on the smallest instance on which it runs."""
        sizes = sorted(s for n, s, b in self.alone if (n, b) == (net, batch))
        at = sizes.index(size)
        growth = lambda low, high: 1.0 if low == high else max(0.0, min(1.0, math.log(
            self.alone[net, high, batch] / self.alone[net, low, batch]) / math.log(high / low)))
        local = growth(sizes[max(at - 1, 0)], sizes[min(at + 1, len(sizes) - 1)])
        return local, None if at == 0 else growth(sizes[0], size)

    def law(self, constants, key):
        a, b, c, d = constants
        local, whole = self.exponents[key[:3]]
        whole = 1 - d * (1 - local) if whole is None else whole
        return 1 + (key[3] - 1) * max(0.0, min(MOST_EXCESS, a + b * local + c * whole * whole))

    def error(self, keys, predict):
        return sum(abs(predict(key) / self.slowdown[key] - 1) for key in keys) / len(keys)


def least(loss, begin):
    """By coordinates with steps that halve: few constants, a smooth loss."""
    at, steps = [value for value, _ in begin], [step for _, step in begin]
    best = loss(at)
    while max(steps) > 1e-3:
        for i in range(len(at)):
            tried = [(loss(at[:i] + [at[i] + way * steps[i]] + at[i + 1:]), way) for way in (-1, 1)]
            value, way = min(tried)
            if value < best:
                best, at[i] = value, at[i] + way * steps[i]
            else:
                steps[i] /= 2
    return at


RULES = {
    "add": lambda pair, copies: 1 + (copies - 1) * (pair - 1),
    "multiply": lambda pair, copies: pair ** (copies - 1),
    "power": lambda pair, copies: pair ** math.log2(copies),
    "share": lambda pair, copies: max(1.0, pair * copies / 2),
}


def judge(name, table):
    row = lambda metric, value, unit, baseline, protocol, better="lower", aim=None: {
        "metric": f"mps_{metric}_{name}", "value": value, "unit": unit, "aim": aim, "better": better, "baseline": baseline,
        "protocol": protocol}
    several = [key for key in table.slowdown if key[3] > 2 and (*key[:3], 2) in table.slowdown]
    pair = lambda key: max(1.0, table.slowdown[*key[:3], 2])
    rows = []
    for rule, combine in RULES.items():
        predict = lambda key: combine(pair(key), key[3])
        bias = {n: sum(predict(k) / table.slowdown[k] - 1 for k in several if k[3] == n) / sum(k[3] == n for k in several)
                for n in sorted({k[3] for k in several})}
        rows.append(row(f"rule_{rule}", 100 * table.error(several, predict), "%", "", f"{len(several)} of three and more copies; "
                        "bias by copies " + ", ".join(f"{n}: {100 * value:+.0f} %" for n, value in bias.items())))
    predicted = {}
    for net in table.nets:
        others = [key for key in table.slowdown if key[0] != net]
        constants = least(lambda c: table.error(others, lambda key: table.law(c, key)), LAW)
        predicted.update({key: table.law(constants, key) for key in table.slowdown if key[0] == net})
    keys = list(predicted)
    fitted = least(lambda c: table.error(keys, lambda key: table.law(c, key)), LAW)
    count = (f"{len(keys)} points of {len(table.nets)} nets, its speeds alone given, a net left out; of all nets a, b, c, d = "
             + ", ".join(f"{value:.3f}" for value in fitted))
    rows.append(row("law_left_out", 100 * table.error(keys, predicted.get), "%", "", count, aim=13))
    rows.append(row("law_rank", rank_correlation([predicted[k] for k in keys], [table.slowdown[k] for k in keys]), "Spearman", "",
                    count, better="higher", aim=0.9))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line")
    parser.add_argument("--data", help="folder with tables of equal copies under MPS")
    parser.add_argument("--smoke", action="store_true", help="the same: it takes seconds")
    parser.add_argument("--horus", help="not asked")
    arguments = parser.parse_args()
    rows = []
    for path in sorted(pathlib.Path(arguments.data).rglob("*.csv")) if arguments.data else []:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            if HEADER <= set(reader.fieldnames or []):
                rows += judge(path.stem, Table(list(reader)))
    if not rows:
        print("mps: SKIPPED: no tables of equal copies under MPS under --data", file=sys.stderr)
    pathlib.Path(arguments.rows).write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
