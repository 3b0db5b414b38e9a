# SPDX-License-Identifier: Apache-2.0
"""How much of the gap to the bound can be closed by whoever believes another measurement of the same pairs.

Where a GPU type was measured in two campaigns, one of them is the truth and the other the belief. Two honest measurements
differ; what this belief cannot win, no model that never saw the jobs can be asked to win. Sums of the two normalised
throughputs of a pair are also pulled towards their mean by several factors, of which the best is only known in hindsight.
"""
import csv
import json

from policy_grids import PAYING, Rows
from policy_tables import ALL_AT_ONCE

FACTORS = (1, 0.75, 0.5, 0.25)
APART = 100  # slowdowns from which on two jobs are believed not to run together
TRUE_WITHIN = 1e-3  # two slowdowns of one campaign: tables round them


def read_pairs(table, gpu):
    """Campaign -> (victim, other) -> slowdown, of the pairs that ran together."""
    found = {}
    with table.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["gpu"] != gpu or not row["slowdown_a"] or not row["slowdown_b"]:
                continue
            of = found.setdefault(row["campaign"], {})
            of[row["job_a"], row["job_b"]] = float(row["slowdown_a"])
            of[row["job_b"], row["job_a"]] = float(row["slowdown_b"])
    return found


def true_slowdowns(path, gpu):
    """The same of a throughput file."""
    speeds = json.loads(path.read_text(encoding="utf-8"))[gpu]
    name = {key: key.split("'")[1] for key in speeds if key.endswith(", 1)")}
    return {(name[a], name[b]): speeds[a]["null"] / speeds[a][b][0]
            for a in name for b in name if speeds[a]["null"] and speeds[a].get(b, [0])[0]}


def other_campaign(table, speeds):
    """Slowdowns of the campaign that is not the truth; None where there is one campaign."""
    path, key, gpu = speeds
    truth = true_slowdowns(path, key)
    for pairs in read_pairs(table, gpu).values():
        both = {pair: slowdown for pair, slowdown in pairs.items() if pair in truth}
        if sum(abs(slowdown - truth[pair]) < TRUE_WITHIN for pair, slowdown in both.items()) < len(both) / 2:
            return both
    return None


def sums(slowdowns):
    """Summed normalised throughput of each pair, once."""
    return {(a, b): 1 / s + 1 / slowdowns[b, a] for (a, b), s in slowdowns.items() if a <= b and (b, a) in slowdowns}


def correlation(x, y):
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    both = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
    return both / (sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y)) ** 0.5


def pulled(slowdowns, factor):
    """With the sums that much of their distance from their mean."""
    of = sums(slowdowns)
    mean = sum(of.values()) / len(of)
    return {(a, b): max(1, s * of[min(a, b), max(a, b)] / (mean + factor * (of[min(a, b), max(a, b)] - mean)))
            for (a, b), s in slowdowns.items() if (min(a, b), max(a, b)) in of}


def read_beliefs(predicted, gpu):
    """(victim, other) -> slowdown of a file of predicted pairs, without those that cannot run together."""
    with predicted.open(newline="", encoding="utf-8") as file:
        return {(row["victim"], row["other"]): float(row["slowdown"]) for row in csv.DictReader(file)
                if row["gpu"] == gpu and float(row["slowdown"]) < APART}


def write_beliefs(predicted, gpu, slowdowns, out):
    """The predicted pairs with those of `gpu` replaced by `slowdowns` where there is one."""
    with predicted.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    for row in rows:
        if row["gpu"] == gpu and (row["victim"], row["other"]) in slowdowns:
            row["slowdown"] = slowdowns[row["victim"], row["other"]]
            row["bound"] = max(float(row["bound"]), row["slowdown"])
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, reader.fieldnames, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def noise(setting, suffix):
    """Beliefs that are another campaign's measurements of the very pairs, and beliefs pulled towards their mean: what noise
    leaves to be won."""
    speeds, folder = setting.speeds[0], setting.folder
    gpu, rows, own = speeds[2], Rows(setting.told()), read_beliefs(setting.inputs.predictions, speeds[2])
    truth = true_slowdowns(*speeds[:2])
    believed = {"predictions": own}
    other = other_campaign(setting.inputs.pairs, speeds)
    if other is not None:
        believed["other_campaign"] = other
    for name, slowdowns in believed.items():
        told, true = sums(slowdowns), sums(truth)
        both = sorted(set(told) & set(true))
        rows.add(f"{name}_sum_correlation_{setting.short}{suffix}", correlation([told[p] for p in both], [true[p] for p in both]),
                 "ratio", "higher", "", None, f"of the summed normalised throughput of {len(both)} pairs with the true one")
        reached = {}
        for factor in FACTORS:
            path = folder / f"noise_{name}_{setting.short}_{factor}.csv"
            write_beliefs(setting.inputs.predictions, gpu, pulled(slowdowns, factor), path)
            results = setting.play(f"noise_{name}_{factor}", setting.backlog(), "fifo",
                                   [{"policy": "exclusive"}, dict(PAYING, name="prices", weights="prices"),
                                    dict(PAYING, name="alike", weights="alike")], beliefs={"predictions": str(path)})
            for policy in ("prices", "alike"):
                reached[f"{policy} x {factor}"] = results.mean("backlog", policy, "gap_closed")
        if all(value is not None for value in reached.values()):
            best = max(reached, key=reached.get)
            rows.add(f"{name}_gap_closed_{setting.short}{suffix}", reached[best], "ratio", "higher",
                     "; ".join(f"{way} {value:.3g}" for way, value in reached.items()), None,
                     f"of the gap to the bound, by the best of these ways in hindsight ({best}); {ALL_AT_ONCE}")
    return rows.rows


TABLES = {"noise": noise}
