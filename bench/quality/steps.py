#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted against measured step times of today's nets, training and inference, from their graphs.

Takes every table of step times under --data that datasets.py turns into a dataset with graphs (those of nets that
measured.py and its like exported lie under --graphs), all of them as one training set, and trains without one family, then without
one GPU type at a time. Rows are judged by campaign: table, mode, GPU, layout and release of the framework.

kept     share of the rows at or below their bound of 90 %, and how far the median bound lies above the measurement
flagged  error of rows that the predictor calls outside, over that of all others

--rounds 0 judges the fitted constants without trees, in a twentieth of the time. --folds N leaves out N-ths of the families together,
the largest apart: quicker, but so few groups can promise no bound worth having.

Three more protocols, with --only or in the smoke size:

unseen     neither the family nor the GPU type was trained on: GPU types of UNSEEN, a quarter of the families at a time
operators  single operators (neusight_ops): constants of each operator from other shapes, an eighth left out at a time, then from
           other GPU types; about OPERATOR_ROWS rows of an operator, whole shapes drawn at random
configs    the built-in bundle, which saw none of it, on language models from their config.json: MPT (mosaicml/llm-foundry) trained
           in 16 bits, sharded over the eight GPUs of one server, whose network is part of the measurement and not predicted
"""
import argparse
import collections
import csv
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import datasets

NEAR = 1.25  # the share of rows that is predicted within this factor
LEAVES = {"family": "lofo", "gpu": "logo"}  # what is left out -> ending of the metric
SMOKE = 300  # rows, spread over the table
# Tables of which the built-in bundle holds nothing: single operators are no steps, and loaders are part of Gavel's.
OPERATORS = "neusight_ops"
LEFT_OUT = (OPERATORS, "gavel")
PROTOCOLS = ("family", "gpu", "unseen", "operators", "configs")
UNSEEN, UNSEEN_AIM, UNSEEN_FOLDS = ("rtx-3090", "rtx-4090"), 25, 4
OPERATOR_ROWS, OPERATOR_FOLDS, OPERATOR_AIMS = 400, 8, {"family": 12, "gpu": 20}
OPERATOR_SMOKE = 40  # rows of the first two operators
MPT_HEADER = {"model", "seq_len", "gpus", "microbatch_per_gpu", "grad_accum", "activation_checkpointing", "step_time_s"}
MPT = {"125m": (768, 12, 12), "350m": (1024, 16, 24), "760m": (1536, 12, 24), "3b": (2560, 20, 32), "7b": (4096, 32, 32),
       "13b": (5120, 40, 40)}  # width, heads, layers; the network's part grows with the GPUs of one step, so eight alone
MPT_WORDS, MPT_GPUS, MPT_TYPES = 50368, "8", ("bf16", "amp_bf16")
# Beginning of a campaign -> aim of its MAPE with a family left out.
AIMS = {"timm train 3090 1.12 nchw": 11, "timm train 3090 1.12 nhwc": 24, "timm infer": 15, "nvidia": 20, "neusight_e2e": 15}
COMPILED = 16


def rows_of(tables):
    """Rows that measure step times and have a graph: of nets, and of single operators."""
    rows, operators = [], []
    for table in tables:
        with table.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row.get("step_time_us") and row.get("graph") and not (row.get("note") or "").startswith("host:"):
                    row["campaign"] = row.get("campaign") or table.stem
                    if table.stem.startswith(OPERATORS):
                        operators.append(row)
                    elif not table.stem.startswith(LEFT_OUT):
                        rows.append(row)
    return rows, operators


def write(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, datasets.COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return path


def deal(rows, folds):
    """Makes families of one fold one family."""
    sizes = collections.Counter(row["family"] for row in rows)
    fold = {family: f"fold {i % folds}" for i, (family, _) in enumerate(sorted(sizes.items(), key=lambda one: (-one[1], one[0])))}
    for row in rows:
        row["family"] = fold[row["family"]]


def run(horus, *words):
    return subprocess.run([horus, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout


def evaluate(horus, table, *words):
    found = json.loads(run(horus, "evaluate", "--data", table, *words, "--json", "--rows"))["evaluations"]
    return next(e for e in found if e["quantity"] == "step_time_us")


def aim_of(campaign, leave):
    if leave != "family":
        return 15
    if "compiled" in campaign:
        return COMPILED
    return next((aim for start, aim in AIMS.items() if campaign.startswith(start)), None)


def judge(name, rows, evaluation, leave):
    ending = LEAVES[leave]
    ratios = [r["predicted"] / r["measured"] for r in rows]
    upper = [r["upper"] / r["measured"] for r in rows]
    told = f"{len(rows)} runs of {len({r['net'] for r in rows})} nets, each predicted without its {leave}"
    roofline = statistics.mean(abs(r["baselines"]["roofline"] / r["measured"] - 1) for r in rows)
    trees = statistics.mean(abs(r["baselines"]["horus_six"] / r["measured"] - 1) for r in rows)
    key = name.replace(" ", "_")
    return [
        {"metric": f"step_time_mape_{ending}_{key}", "value": 100 * statistics.mean(abs(r - 1) for r in ratios), "unit": "%",
         "aim": aim_of(name, leave), "better": "lower",
         "baseline": f"roofline {100 * roofline:.0f}; trees on six features {100 * trees:.0f}", "protocol": told},
        {"metric": f"step_time_near_{ending}_{key}", "value": 100 * statistics.mean(abs(math.log(r)) <= math.log(NEAR) for r in ratios),
         "unit": "%", "aim": None, "better": "higher", "baseline": f"median predicted / measured {statistics.median(ratios):.2f}",
         "protocol": f"{told}; share within x{NEAR}"},
        {"metric": f"step_time_kept_{ending}_{key}", "value": 100 * statistics.mean(u >= 1 for u in upper), "unit": "%", "aim": 90,
         "better": "higher", "baseline": f"median bound {100 * (statistics.median(upper) - 1):.0f} % above",
         "protocol": f"{told}; promised {evaluation['coverage_promised_pct']:.0f} %"}]


def flagged(evaluation, leave):
    errors = collections.defaultdict(list)
    for r in evaluation["rows"]:
        errors[r["outside"]].append(abs(r["predicted"] / r["measured"] - 1))
    if not errors[True] or not errors[False]:
        return []
    return [{"metric": f"step_time_flagged_{LEAVES[leave]}", "value": statistics.mean(errors[True]) / statistics.mean(errors[False]),
             "unit": "x", "aim": 1.5, "better": "higher", "baseline": "",
             "protocol": f"error of {len(errors[True])} rows called outside over that of {len(errors[False])} others"}]


def nets(horus, rows, leave, rounds, out):
    evaluation = evaluate(horus, write(out / "steps.csv", rows), "--leave", leave, "--rounds", rounds)
    by_campaign = collections.defaultdict(list)
    for judged in evaluation["rows"]:
        by_campaign[rows[int(judged["where"].rsplit(" ", 1)[1]) - 1]["campaign"]].append(judged)
    found = [row for name, judged in sorted(by_campaign.items()) for row in judge(name, judged, evaluation, leave)]
    return found + flagged(evaluation, leave)


def unseen(horus, rows, rounds, out, smoke):
    """Trained without the GPU type and without a quarter of the families, judged on what both left out have in common."""
    rows = [dict(row) for row in rows]
    deal(rows, 2 if smoke else UNSEEN_FOLDS)
    by_campaign = collections.defaultdict(list)
    for gpu in UNSEEN:
        for fold in sorted({row["family"] for row in rows}):
            train = [row for row in rows if row["family"] != fold and row["gpu"] != gpu]
            test = [row for row in rows if row["family"] == fold and row["gpu"] == gpu]
            if not test or not train:
                continue
            bundle, table = out / "unseen.hbundle", write(out / "train.csv", train)
            run(horus, "train", "--data", table, "--bundle", "none", "--rounds", rounds, "--out", bundle)
            for row, judged in zip(test, evaluate(horus, write(out / "test.csv", test), "--bundle", bundle)["rows"]):
                by_campaign[row["campaign"]].append((judged["predicted"] / judged["measured"], judged["upper"] / judged["measured"]))
    found = []
    for name, ratios in sorted(by_campaign.items()):
        told = f"{len(ratios)} runs, each predicted without its family and its GPU type"
        key = name.replace(" ", "_")
        found += [{"metric": f"step_time_mape_unseen_{key}", "value": 100 * statistics.mean(abs(r - 1) for r, _ in ratios), "unit": "%",
                   "aim": UNSEEN_AIM, "better": "lower", "protocol": told,
                   "baseline": f"median predicted / measured {statistics.median(r for r, _ in ratios):.2f}"},
                  {"metric": f"step_time_kept_unseen_{key}", "value": 100 * statistics.mean(u >= 1 for _, u in ratios), "unit": "%",
                   "aim": 90, "better": "higher", "protocol": told,
                   "baseline": f"median bound {100 * (statistics.median(u for _, u in ratios) - 1):.0f} % above"}]
    return found


def shapes_of(rows, most):
    """About so many of the rows: whole shapes, drawn at random, in folds that are families and nets."""
    shapes = sorted({row["family"] for row in rows})
    random.Random(1).shuffle(shapes)
    kept = set(shapes[: max(OPERATOR_FOLDS, len(shapes) * min(most, len(rows)) // len(rows))])
    some = [dict(row) for row in rows if row["family"] in kept]
    deal(some, OPERATOR_FOLDS)
    for row in some:
        row["net"] = f"{row['net']} {row['family']}"
    return some


def operators(horus, rows, rounds, out, smoke):
    by_operator = collections.defaultdict(list)
    for row in rows:
        by_operator[row["net"]].append(row)
    found = []
    for leave, aim in OPERATOR_AIMS.items():
        errors = {}
        word = "shapes" if leave == "family" else leave
        for name, of_operator in sorted(by_operator.items())[: 2 if smoke else None]:
            table = write(out / "operator.csv", shapes_of(of_operator, OPERATOR_SMOKE if smoke else OPERATOR_ROWS))
            evaluation = evaluate(horus, table, "--leave", leave, "--rounds", rounds)
            mape = {m["method"]: m["mape_pct"] for m in evaluation["methods"]}
            errors[name] = mape["horus"]
            found.append({"metric": f"operator_time_mape_{word}_{name.removeprefix('op_')}", "value": mape["horus"], "unit": "%", "aim": aim,
                          "better": "lower", "baseline": f"trees on six features {mape['horus_six']:.0f}",
                          "protocol": f"{evaluation['rows_measured']} runs of {len(of_operator)}, {word} left out"})
        if errors:
            whole = sum(len(by_operator[name]) for name in errors)
            mean = sum(error * len(by_operator[name]) for name, error in errors.items()) / whole
            found.append({"metric": f"operator_time_mape_{word}", "value": mean, "unit": "%", "aim": aim, "better": "lower", "baseline": "",
                          "protocol": f"mean of {len(errors)} operators, each by its {whole} rows of the table"})
    return found


def mpt_config(model, tokens, out):
    width, heads, layers = MPT[model]
    path = out / f"mpt-{model}-{tokens}.json"
    path.write_text(json.dumps({
        "model_type": "gpt2", "n_embd": width, "n_head": heads, "n_layer": layers, "n_inner": 4 * width, "vocab_size": MPT_WORDS,
        "n_positions": tokens, "activation_function": "gelu_new", "torch_dtype": "float32"}), encoding="utf-8")
    return path


def configs(horus, data, out, smoke):
    by_gpu = collections.defaultdict(list)
    for path in sorted(data.rglob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows = list(reader) if MPT_HEADER <= set(reader.fieldnames or ()) else []
        rows = [r for r in rows if r["model"] in MPT and r["gpus"] == MPT_GPUS and r["precision"] in MPT_TYPES]
        for r in rows[:: max(1, len(rows) // 6) if smoke else 1]:
            words = ["--checkpoint", MPT[r["model"]][2]] if r["activation_checkpointing"] == "True" else []
            gpu = r["gpu"].replace("_", "-")
            said = json.loads(run(horus, "inspect", mpt_config(r["model"], int(r["seq_len"]), out), "--mode", "training", "--batch",
                                  r["microbatch_per_gpu"], "--dim", f"seq={r['seq_len']}", "--precision", "amp-bf16", "--optimizer",
                                  "adamw", "--gpu", gpu, *words, "--json"))["gpus"][0]
            measured = float(r["step_time_s"]) * 1e6 / int(r["grad_accum"])
            by_gpu[gpu].append((said["step_time_us"] / measured, said["step_time_upper_us"] / measured))
    return [{"metric": f"step_time_median_configs_{gpu.replace('-', '_')}", "unit": "%", "aim": None, "better": "lower",
             "value": 100 * statistics.median(abs(ratio - 1) for ratio, _ in ratios),
             "baseline": f"median predicted / measured {statistics.median(ratio for ratio, _ in ratios):.2f}",
             "protocol": f"{len(ratios)} runs of MPT on eight {gpu}; {100 * statistics.mean(u >= 1 for _, u in ratios):.0f} % "
                         "of them below the bound"} for gpu, ratios in sorted(by_gpu.items())]


def main():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "horus" / "graphs"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line")
    parser.add_argument("--data", help="folder with tables of step times")
    parser.add_argument("--graphs", type=pathlib.Path, action="append", help="folder of exported graphs; may be repeated")
    parser.add_argument("--rounds", type=int, default=100, help="trees at most")
    parser.add_argument("--folds", type=int, default=0, help="of whole families; 0: one family at a time")
    parser.add_argument("--only", choices=PROTOCOLS, action="append", help="may be repeated; family and gpu if not given")
    parser.add_argument("--smoke", action="store_true", help=f"about {SMOKE} rows, without trees")
    parser.add_argument("--horus", default=datasets.ROOT / "build" / "release" / "bin" / "horus")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        tables = datasets.convert_all(pathlib.Path(arguments.data), out, arguments.graphs or [cache]) if arguments.data else []
        found, of_operators = rows_of(tables)
        if arguments.smoke:
            found = found[:: max(1, len(found) // SMOKE)]
        rounds = 0 if arguments.smoke else arguments.rounds
        for protocol in arguments.only or (PROTOCOLS if arguments.smoke else LEAVES):
            if protocol == "configs":
                rows += configs(arguments.horus, pathlib.Path(arguments.data), out, arguments.smoke) if arguments.data else []
            elif not found:
                continue
            elif protocol == "operators":
                rows += operators(arguments.horus, of_operators, rounds, out, arguments.smoke)
            elif protocol == "unseen":
                rows += unseen(arguments.horus, found, rounds, out, arguments.smoke)
            else:
                dealt = [dict(row) for row in found]
                if arguments.folds:
                    deal(dealt, arguments.folds)
                rows += nets(arguments.horus, dealt, protocol, rounds, out)
    if not rows:
        print("steps: SKIPPED: no tables of step times under --data, or no graphs of their nets under --graphs", file=sys.stderr)
    pathlib.Path(arguments.rows).write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
