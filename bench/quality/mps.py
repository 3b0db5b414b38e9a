#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What equal copies of a net cost each other under MPS on MIG instances, and how several add up.

Takes every table under --data whose header names a net, an instance size, a batch, a number of copies and a throughput per
copy. Slowdown = throughput of one copy alone / of each of several.

rules     from the slowdown of two copies to that of three and more: the excesses add up (what laws.h does), multiply, are
          a power of the number, or share the machine
law       excess of a pair = a + b e + c E^2 from the net's speeds alone on smaller instances, each net left out of the fit; the
          excesses add up. E is the exponent with which the speed grows from the smallest instance to this one, e that around
          this one; on the smallest instance E = 1 - d (1 - e)
graph     excess of a pair = a + b min(u^1.5, 1 / (1 + (c / t)^d)), each net left out of the fit; t is what an operator takes on all
          SMs of the instance, u the share of the time that the net keeps it busy, both predicted from the graph: what
          src/interference/laws.h does. `shipped`: with its constants
"""
import argparse
import csv
import json
import math
import pathlib
import subprocess
import sys

import datasets

HEADER = {"net", "mig_gpc", "batch", "copies", "ran", "throughput_per_copy"}
MOST_EXCESS = 1.05  # of a pair: taking turns, and a little for the switches; chosen
LAW = ((0.03, 0.2), (0.2, 0.1), (0.8, 0.1), (0.3, 0.1))  # where the search for a, b, c, d begins, and its first step

GRAPH = ((0.02, 0.05), (0.9, 0.1), (25, 5), (4, 1))  # likewise
IN_TURNS = 1.5  # exponent of the busy share in what copies cost each other under time slicing: src/interference/laws.h
SHIPPED = (0.02, 0.9, 26, 4)  # as src/interference/laws.h
LEAST_GROWTH = 0.5  # exponent of the speed in the number of slices; chosen, between BERT and the others
GPU, WHOLE = "a100-80gb", 7  # the card and its slices
# Nets as the zoo has them. Upstream ran Inception at 224 pixels, the graph has 299.
ZOO = {"bert": ("bert_large", ["--dim", "seq=128"]), "inceptionv3": ("inception_v3", []), "mobilenetv2": ("mobilenet_v2", [])}


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


def on_gpu(horus, net, batch):
    """On the whole GPU: microseconds of an operator as if it filled all SMs, and the busy share."""
    name, dims = ZOO.get(net, (net, []))
    command = [horus, "inspect", datasets.MODELS / "graphs" / f"{name}.onnx", "--mode", "inference", "--precision", "tf32",
               "--gpu", GPU, "--batch", str(batch), "--json", "--features", *dims]
    gpu = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["gpus"][0]
    features = {feature["name"]: feature["value"] for feature in gpu["features"]}
    return gpu["operator_us"] * features["roofline_mean_parallelism"], gpu["gpu_util_pct"] / 100


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

    def graph_law(self, constants, key, graphs):
        a, b, c, d = constants
        net, size, batch, copies = key
        operator_us, busy = (value * WHOLE / size for value in graphs[net, batch])
        return 1 + (copies - 1) * (a + b * min(min(1, busy) ** IN_TURNS, 1 / (1 + (c / operator_us) ** d)))

    def scales(self, net):
        """Whether all slices make it faster than one at any batch: if not, its host limits it, and no graph tells that."""
        return max(whole or 0 for (n, size, _), (_, whole) in self.exponents.items() if (n, size) == (net, WHOLE)) > LEAST_GROWTH

    def left_out(self, nets, law, begin):
        """Points of these nets, what `law` predicts of each, fitted to the other nets, and its constants of all of them."""
        keys = [key for key in self.slowdown if key[0] in nets]
        fit = lambda keys: least(lambda c: self.error(keys, lambda key: law(c, key)), begin)
        predicted = {}
        for net in nets:
            constants = fit([key for key in keys if key[0] != net])
            predicted.update({key: law(constants, key) for key in keys if key[0] == net})
        return keys, predicted, fit(keys)

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


def judge(name, table, horus):
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
    graphs = {(net, batch): on_gpu(horus, net, batch) for net, _, batch, _ in table.slowdown}
    graph_law = lambda c, key: table.graph_law(c, key, graphs)
    scaling = [net for net in table.nets if table.scales(net)]
    for short, law, nets, told, begin, aims in (
            ("law", table.law, table.nets, "its speeds alone given", LAW, (13, 0.9)),
            ("graph", graph_law, table.nets, "from its graph alone", GRAPH, (18, None)),
            ("graph_scaling", graph_law, scaling, "those that more slices make faster, from its graph alone", GRAPH, (None, None))):
        keys, predicted, fitted = table.left_out(nets, law, begin)
        errors = lambda keys: 100 * table.error(keys, predicted.get)
        count = (f"{len(keys)} points of {len(nets)} nets, {told}, a net left out; of all nets a, b, c, d = "
                 + ", ".join(f"{value:.3f}" for value in fitted))
        by_net = "; ".join(f"{net} {errors([k for k in keys if k[0] == net]):.1f}" for net in nets)
        rows.append(row(f"{short}_left_out", errors(keys), "%", by_net, count, aim=aims[0]))
        rows.append(row(f"{short}_pairs", errors([k for k in keys if k[3] == 2]), "%", "", f"two copies; {count}"))
        rows.append(row(f"{short}_rank", rank_correlation([predicted[k] for k in keys], [table.slowdown[k] for k in keys]),
                        "Spearman", "", count, better="higher", aim=aims[1]))
    rows.append(row("graph_shipped", 100 * table.error(list(table.slowdown), lambda key: graph_law(SHIPPED, key)), "%", "",
                    "the constants of src/interference/laws.h, which saw these points"))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line")
    parser.add_argument("--data", help="folder with tables of equal copies under MPS")
    parser.add_argument("--smoke", action="store_true", help="the same: it takes seconds")
    parser.add_argument("--horus", default=datasets.ROOT / "build" / "release" / "bin" / "horus")
    arguments = parser.parse_args()
    rows = []
    for path in sorted(pathlib.Path(arguments.data).rglob("*.csv")) if arguments.data else []:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            if HEADER <= set(reader.fieldnames or []):
                rows += judge(path.stem, Table(list(reader)), arguments.horus)
    if not rows:
        print("mps: SKIPPED: no tables of equal copies under MPS under --data", file=sys.stderr)
    pathlib.Path(arguments.rows).write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
