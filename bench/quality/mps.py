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
graph     what src/interference/laws.h does: the device needs the share w = min(most, k d q / t) of a step of t (d, q and t
          predicted from the graph: device time by specifications, share of the SMs that kernels fill, step), on a slice more,
          and n copies take ((1 + (n w)^3 - w^3)^(1/3) + l (n - 1) w (1 - w)) times as long; k, most and l fitted to the other
          nets. `shipped`: with its constants. `slices`: what one copy keeps of its speed on smaller instances
pick      whether n copies run faster under MPS on the whole card or on MIG instances of their own, constants of laws.h

A table of copies of one net by mode (sharing_mode, copies, inference_s) is judged by laws.h with its step alone measured, and
nothing fitted to it.
"""
import argparse
import csv
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import datasets

HEADER = {"net", "mig_gpc", "batch", "copies", "ran", "throughput_per_copy"}
MOST_EXCESS = 1.05  # of a pair: taking turns, and a little for the switches; chosen
LAW = ((0.03, 0.2), (0.2, 0.1), (0.8, 0.1), (0.3, 0.1))  # where the search for a, b, c, d begins, and its first step

GRAPH = ((1.5, 0.2), (0.9, 0.05), (0.1, 0.05))  # likewise k, most, l
SHIPPED = (1.5, 0.85, 0.15)  # as src/interference/laws.h
LEAST_GROWTH = 0.5  # exponent of the speed in the number of slices; chosen, between BERT and the others
GPU, WHOLE = "a100-80gb", 7  # the card and its slices
MEMORY = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}  # eighths of the memory of an instance of so many slices
INSTANCES = {2: 3, 3: 2, 4: 1, 5: 1}  # copies: slices of the largest instances of which there are so many
# Nets as the zoo has them, and sizes in the graph that upstream changed. YOLOS-small is a ViT-small of an image of 800 x 1056,
# 3,300 patches, without its 100 detection tokens.
ZOO = {"bert": ("bert_large", ["--dim", "seq=128"], []), "inceptionv3": ("inception_v3", [], [(299, 224)] * 2),
       "yolos": ("deit_s_16", [], [(224, 800), (224, 1056), (197, 3301)])}
MODES = {"sharing_mode", "copies", "inference_s"}


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


def varint(number):
    return bytes([number & 127 | 128, number >> 7])


def resized(name, sizes):
    """The graph with the first dimension of each size replaced by another, which takes two bytes in the file as well."""
    graph = (datasets.MODELS / "graphs" / f"{name}.onnx").read_bytes()
    for old, new in sizes:
        field = b"\x08" + varint(old)
        assert field in graph, (name, old)
        graph = graph.replace(field, b"\x08" + varint(new), 1)
    return graph


def ask(horus, net, batch, precision, *more):
    """What `horus inspect` says of the net on the whole GPU; with --beside, itself."""
    name, dims, sizes = ZOO.get(net, (net, [], []))
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(resized(name, sizes))
        file.flush()
        command = [horus, "inspect", file.name, "--mode", "inference", "--precision", precision, "--gpu", GPU,
                   "--batch", str(batch), "--json", *dims, *more] + [file.name] * ("--beside" in more)
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["gpus"][0]


def on_gpu(horus, net, batch, precision="tf32"):
    """Device time as if kernels filled all SMs, step, and how much of it is the device's by laws.h."""
    gpu = ask(horus, net, batch, precision, "--features")
    features = {feature["name"]: feature["value"] for feature in gpu["features"]}
    return features["roofline_device_time_us"] * features["roofline_mean_parallelism"], gpu["step_time_us"], gpu["work_share"]


def work_share(constants, graph):
    return min(constants[1], constants[0] * graph[0] / graph[1])


def on_slice(work, size):
    """(longer step, share of it that the device needs) on an instance of so many slices."""
    growth = (size / WHOLE * MEMORY[size] / MEMORY[WHOLE]) ** -0.5
    longer = (1 + work**3 * (growth**3 - 1)) ** (1 / 3)
    return longer, work * growth / longer


def beside(work, copies, launch):
    return (1 + (copies * work) ** 3 - work**3) ** (1 / 3) + launch * (copies - 1) * work * (1 - work)


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
        net, size, batch, copies = key
        return beside(on_slice(work_share(constants, graphs[net, batch]), size)[1], copies, constants[2])

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

    def slices(self, nets):
        """(net, size, batch) -> measured speed on a slice, of one copy."""
        return {key: speed / self.alone[key[0], WHOLE, key[2]] for key, speed in self.alone.items()
                if key[0] in nets and key[1] < WHOLE and (key[0], WHOLE, key[2]) in self.alone}

    def picks(self, graphs, nets):
        """(share of the cases in which the faster of MPS and MIG is picked, speed of what is picked over the faster, cases)."""
        right, kept = [], []
        for (net, size, batch, copies), slowdown in self.slowdown.items():
            own = (net, INSTANCES.get(copies), batch)
            if size != WHOLE or net not in nets or own not in self.alone:
                continue
            work = work_share(SHIPPED, graphs[net, batch])
            mps, mig = self.alone[net, WHOLE, batch] / slowdown, self.alone[own]
            picked, other = (mps, mig) if beside(work, copies, SHIPPED[2]) <= on_slice(work, own[1])[0] else (mig, mps)
            right.append(picked >= other)
            kept.append(picked / max(picked, other))
        return sum(right) / len(right), sum(kept) / len(kept), len(right)

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
            ("graph_scaling", graph_law, scaling, "those that more slices make faster, from its graph alone", GRAPH, (9, None))):
        keys, predicted, fitted = table.left_out(nets, law, begin)
        errors = lambda keys: 100 * table.error(keys, predicted.get)
        count = (f"{len(keys)} points of {len(nets)} nets, {told}, a net left out; constants of all nets "
                 + ", ".join(f"{value:.3f}" for value in fitted))
        by_net = "; ".join(f"{net} {errors([k for k in keys if k[0] == net]):.1f}" for net in nets)
        rows.append(row(f"{short}_left_out", errors(keys), "%", by_net, count, aim=aims[0]))
        rows.append(row(f"{short}_pairs", errors([k for k in keys if k[3] == 2]), "%", "", f"two copies; {count}"))
        rows.append(row(f"{short}_rank", rank_correlation([predicted[k] for k in keys], [table.slowdown[k] for k in keys]),
                        "Spearman", "", count, better="higher", aim=aims[1]))
    as_shipped = lambda key: beside(on_slice(graphs[key[0], key[2]][2], key[1])[1], key[3], SHIPPED[2])
    shipped = lambda keys: 100 * table.error(keys, as_shipped)
    saw = "the constants of src/interference/laws.h, which saw these points"
    rows.append(row("graph_shipped", shipped(list(table.slowdown)), "%", "", saw))
    rows.append(row("graph_scaling_shipped", shipped([key for key in table.slowdown if key[0] in scaling]), "%", "", saw))
    errors = []
    for net in scaling:  # k and most from the slices of the other nets
        loss = lambda c, points: sum(abs(1 / on_slice(work_share(c, graphs[n, b]), s)[0] - v) for (n, s, b), v in points.items())
        fitted = least(lambda c: loss(c, table.slices(set(scaling) - {net})), GRAPH[:2])
        errors.append((loss(fitted, table.slices({net})), len(table.slices({net}))))
    rows.append(row("slices_left_out", sum(e for e, _ in errors) / sum(n for _, n in errors), "of the full speed", "",
                    f"{sum(n for _, n in errors)} points, one copy of the nets that more slices make faster, a net left out",
                    aim=0.065))
    right, kept, count = table.picks(graphs, scaling)
    rows.append(row("or_mig_picked", 100 * right, "%", f"speed kept: {100 * kept:.1f} %", f"{count} cases of 2 to 5 copies; {saw}",
                    better="higher", aim=90))
    return rows


def judge_modes(name, table, horus):
    """Copies by mode; the row says each measured and predicted slowdown."""
    step = {(r["sharing_mode"], int(r["copies"])): float(r["inference_s"]) for r in table}
    alone = step["mps", 1]
    graph = on_gpu(horus, "yolos", 1, "fp32")
    work = min(SHIPPED[1], SHIPPED[0] * graph[0] / (1e6 * alone))
    options = ask(horus, "yolos", 1, "fp32", "--beside")["options"]
    pair = next(option["slowdown"][0] for option in options if option["mode"] == "time-slice")
    rows = []
    for mode, predict in (("mps", lambda n: beside(work, n, SHIPPED[2])), ("mig-1g.10gb", lambda n: on_slice(work, 1)[0]),
                          ("time-slice", lambda n: RULES["add"](pair, n))):
        points = {n: seconds / alone for (m, n), seconds in step.items() if m == mode and (n > 1 or "mig" in mode)}
        errors = {n: abs(predict(n) / value - 1) for n, value in points.items()}
        said = "; ".join(f"{n}: {predict(n):.2f} for {value:.2f}" for n, value in sorted(points.items()))
        rows.append({"metric": f"modes_{mode}_{name}", "value": 100 * max(errors.values()), "unit": "%", "aim": None,
                     "better": "lower", "baseline": said,
                     "protocol": "largest error of copies of YOLOS-small, its step alone measured (but for time slicing); "
                                 f"w = {work:.2f}"})
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
            if MODES <= set(reader.fieldnames or []):
                rows += judge_modes(path.stem, list(reader), arguments.horus)
            if HEADER <= set(reader.fieldnames or []):
                rows += judge(path.stem, Table(list(reader)), arguments.horus)
    if not rows:
        print("mps: SKIPPED: no tables of equal copies under MPS under --data", file=sys.stderr)
    pathlib.Path(arguments.rows).write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
