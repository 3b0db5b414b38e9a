#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted against measured peak GPU memory, leaving out one model at a time on all GPUs.

Reads every util_mem/*.csv under --data whose header names a model, a batch size and a peak; a GPU is whatever the other
columns tell apart, an opaque id. Models are looked up among the graphs of examples/models. Tables of TensorFlow's
benchmarks, whose rows are named by model and batch, tell only how straight memory is in the batch.

Assumed, since the data do not say: SGD with momentum, float32. `memory_mape_lomo_*` with other optimisers stand beside.

memory_stranger_*  a site that nobody measured: every table of memory that datasets.py turns into a dataset, one campaign left out of
                   training at a time. A draw is four runs of one GPU of it for `horus calibrate`; that GPU's other runs are judged
"""
import argparse
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

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GRAPHS = ROOT / "examples" / "models" / "graphs"
MIB = 1 << 20
OPTIMISERS = ("momentum", "sgd", "adam")
# What an unfitted estimate adds for a framework that loads all kernels at once, as in the years of the data: the memory
# that PyTorch 1.3 takes on a Titan V for one small tensor, less its 2 MiB segment (pytorch/pytorch issue 28394).
EAGER_CONTEXT_MIB = 1006
MARGIN_SHARE = 0.03  # as in src/features/memory.cc
PROMISED = 0.9
RESAMPLES, SEED = 2000, 1
FOUR, DRAWS, SMOKE_DRAWS, LEAST_RUNS = 4, 200, 2, 10  # runs of a draw, draws a GPU, runs of a GPU that is drawn from


class Case:
    """One measured run: model, batch, GPU and peak in MiB."""

    def __init__(self, model, batch, gpu, peak):
        self.model, self.batch, self.gpu, self.peak = model, batch, gpu, peak


def column(header, *words):
    found = [name for name in header if all(word in name.lower() for word in words)]
    return found[0] if found else None


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        header = reader.fieldnames or []
        model, batch, peak = column(header, "model"), column(header, "batch"), column(header, "peak", "mem")
        if not (model and batch and peak):
            return []
        # Columns that do not vary with model and batch describe the GPU.
        rows = list(reader)
    keys = {name for name in header if name not in (model, batch, peak)}
    of_run = {}
    for row in rows:
        for name in keys:
            of_run.setdefault((row[model], row[batch], name), set()).add(row[name])
    gpu = sorted(name for name in keys if any(len(v) > 1 for (_, _, n), v in of_run.items() if n == name))
    return [Case(r[model], int(r[batch]), tuple(r[name] for name in gpu), float(r[peak])) for r in rows]


def read_named(path):
    """Tables whose rows are named "vgg11_25_1min": model, batch, and what does not change memory."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        name, peak = column(reader.fieldnames or [], "name"), column(reader.fieldnames or [], "peak", "mem")
        if not (name and peak):
            return []
        words = [(row[name].split("_"), float(row[peak])) for row in reader]
    return [Case(model, int(batch), (), peak) for (model, batch, *_), peak in words if batch.isdigit()]


def inspect(horus, model, batch, optimiser):
    command = [horus, "inspect", GRAPHS / f"{model}.onnx", "--batch", str(batch), "--optimizer", optimiser,
               "--gpu", "v100-sxm2-16gb", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["memory"]


def weighted_median(values):
    """Of [(value, weight)]."""
    values = sorted(values)
    half, passed = sum(w for _, w in values) / 2, 0
    for value, weight in values:
        passed += weight
        if passed >= half:
            return value
    return values[-1][0]


def contexts(cases, own):
    """Per GPU, the constant with the least mean absolute percentage error."""
    by_gpu = {}
    for case in cases:
        by_gpu.setdefault(case.gpu, []).append((case.peak - own[case.model, case.batch], 1 / case.peak))
    return {gpu: weighted_median(values) for gpu, values in by_gpu.items()}


def leave_one_model_out(cases, own):
    """The estimate of each case, its GPU's context fitted on the other models."""
    estimates = {}
    for left_out in sorted({c.model for c in cases}):
        context = contexts([c for c in cases if c.model != left_out], own)
        estimates.update({c: own[c.model, c.batch] + context[c.gpu] for c in cases if c.model == left_out})
    return estimates


def solve(matrix, right):
    """Gaussian elimination with partial pivoting."""
    rows = [row[:] + [value] for row, value in zip(matrix, right)]
    size = len(rows)
    for i in range(size):
        pivot = max(range(i, size), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(i + 1, size):
            factor = rows[r][i] / rows[i][i]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    answer = [0.0] * size
    for i in reversed(range(size)):
        answer[i] = (rows[i][size] - sum(rows[i][k] * answer[k] for k in range(i + 1, size))) / rows[i][i]
    return answer


def line_estimates(cases, activations, weights):
    """A straight line in activations and weights with a context per GPU, least relative squares."""
    gpus = sorted({c.gpu for c in cases})
    terms = lambda c: [activations[c.model, c.batch], weights[c.model, c.batch]] + [float(c.gpu == g) for g in gpus]
    estimates = {}
    for left_out in sorted({c.model for c in cases}):
        rows = [([t / c.peak for t in terms(c)]) for c in cases if c.model != left_out]
        size = len(gpus) + 2
        normal = [[sum(r[i] * r[j] for r in rows) for j in range(size)] for i in range(size)]
        answer = solve(normal, [sum(r[i] for r in rows) for i in range(size)])
        estimates.update({c: sum(a * t for a, t in zip(answer, terms(c))) for c in cases if c.model == left_out})
    return estimates


def mape(estimates):
    return 100 * sum(abs(e - c.peak) / c.peak for c, e in estimates.items()) / len(estimates)


def bounds(cases, own, scratch):
    """Upper bounds of each case from the other models, and the conformal scale.

    The score of a case is its error over (a share of the estimate + the largest convolution's operands). A model's
    score is the promised quantile of its cases'; with n models, the bound takes the ceil(promise x (n + 1))-th least.
    """
    models = sorted({c.model for c in cases})
    upper, scales = {}, []
    for left_out in models:
        others = [c for c in cases if c.model != left_out]
        estimates = leave_one_model_out(others, own)
        width = lambda c, e: MARGIN_SHARE * e + scratch[c.model, c.batch]
        of_model = {}
        for case, estimate in estimates.items():
            of_model.setdefault(case.model, []).append((case.peak - estimate) / width(case, estimate))
        per_model = sorted(quantile(scores, PROMISED) for scores in of_model.values())
        rank = min(len(per_model), -(-int(PROMISED * 100) * (len(per_model) + 1) // 100))
        scale = max(0.0, per_model[rank - 1])
        scales.append(scale)
        context = contexts(others, own)
        for case in cases:
            if case.model == left_out:
                estimate = own[case.model, case.batch] + context[case.gpu]
                upper[case] = estimate + scale * width(case, estimate)
    return upper, sorted(scales)[len(scales) // 2]


def quantile(values, share):
    """Linear between order statistics."""
    values = sorted(values)
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])


def interval(cases, value_of):
    """95 % percentile interval, models drawn with replacement."""
    by_model = {}
    for case in cases:
        by_model.setdefault(case.model, []).append(value_of(case))
    models, draws, source = sorted(by_model), [], random.Random(SEED)
    for _ in range(RESAMPLES):
        drawn = [v for m in source.choices(models, k=len(models)) for v in by_model[m]]
        draws.append(sum(drawn) / len(drawn))
    return quantile(draws, 0.025), quantile(draws, 0.975)


def measure(name, cases, horus):
    memory = {(m, b, o): inspect(horus, m, b, o) for m, b in sorted({(c.model, c.batch) for c in cases})
              for o in OPTIMISERS}
    runs = sorted({(c.model, c.batch) for c in cases})
    # Without context and loaded kernels: those are the GPU's constant.
    held = lambda parts: (parts["peak_without_context_bytes"] - parts["loaded_kernels_bytes"]) / MIB
    own = {o: {(m, b): held(memory[m, b, o]) for m, b in runs} for o in OPTIMISERS}
    assumed = own[OPTIMISERS[0]]
    part = lambda key: {(m, b): memory[m, b, OPTIMISERS[0]][key] / MIB for m, b in runs}
    horus_formula, scratch = part("horus_estimate_bytes"), part("largest_scratch_bytes")

    fitted = leave_one_model_out(cases, assumed)
    unfitted = {c: assumed[c.model, c.batch] + EAGER_CONTEXT_MIB for c in cases}
    formula = {c: horus_formula[c.model, c.batch] for c in cases}
    line = mape(line_estimates(cases, part("saved_total_bytes"), part("weights_bytes")))
    upper, scale = bounds(cases, assumed, scratch)
    misses = interval(cases, lambda c: 100.0 * (c.peak > upper[c]))
    count = f"{len(cases)} runs of {len({c.model for c in cases})} models on {len({c.gpu for c in cases})} GPUs"
    left_out = f"{count}, one model left out on all GPUs; SGD with momentum assumed"
    row = lambda metric, value, aim, baseline, protocol: {
        "metric": f"{metric}_{name}", "value": value, "unit": "%", "aim": aim, "better": "lower", "baseline": baseline,
        "protocol": protocol}
    rows = [
        row("memory_mape_horus_formula", mape(formula), None, "", f"{count}; the published formula"),
        row("memory_mape_line", line, None, "", f"{left_out}; activations and weights, context per GPU"),
        row("memory_mape_nofit", mape(unfitted), 12.0, f"Horus formula {mape(formula):.1f} %",
            f"{count}; nothing fitted, {EAGER_CONTEXT_MIB} MiB for context and kernels"),
        row("memory_mape_lomo", mape(fitted), 5.0, f"line {line:.1f} %", f"{left_out}; context per GPU fitted"),
        row("memory_bound_miss", 100.0 * sum(c.peak > upper[c] for c in cases) / len(cases), 3.0,
            f"95 % interval {misses[0]:.1f} to {misses[1]:.1f} %, clustered by model",
            f"{left_out}; promise {100 * PROMISED:.0f} % of an unseen model's runs; median scale {scale:.2f}"),
        row("memory_bound_slack", 100 * sum((upper[c] - c.peak) / c.peak for c in cases) / len(cases), 15.0, "",
            f"{left_out}; bound over truth, mean"),
    ]
    for optimiser in OPTIMISERS[1:]:
        rows.append(row(f"memory_mape_lomo_{optimiser}", mape(leave_one_model_out(cases, own[optimiser])), None, "",
                        f"as memory_mape_lomo, {optimiser} assumed"))
    return rows


def measure_shape(name, cases):
    """How straight memory is in the batch: the middle batch of each model from a line through the others."""
    by_model = {}
    for case in cases:
        by_model.setdefault((case.model, case.gpu), {})[case.batch] = case.peak
    errors = []
    for peaks in by_model.values():
        batches = sorted(peaks)
        for low, middle, high in zip(batches, batches[1:], batches[2:]):
            share = (middle - low) / (high - low)
            errors.append(abs(peaks[low] + share * (peaks[high] - peaks[low]) - peaks[middle]) / peaks[middle])
    if not errors:
        return []
    return [{"metric": f"memory_line_error_{name}", "value": 100 * sum(errors) / len(errors), "unit": "%", "aim": None,
             "better": "lower", "baseline": "", "protocol": f"{len(errors)} middle batches from their neighbours"}]


def write(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, datasets.COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return path


def judged(horus, bundle, table):
    """[(error, bound / measured)] of each row."""
    done = subprocess.run([horus, "evaluate", "--data", table, "--bundle", bundle, "--json", "--rows"], check=True,
                          capture_output=True, text=True)
    rows = next(e for e in json.loads(done.stdout)["evaluations"] if e["quantity"] == "mem_mib")["rows"]
    return [(abs(r["predicted"] / r["measured"] - 1), r["upper"] / r["measured"]) for r in rows]


def after_four(horus, base, runs, out, draws, seed):
    """Of each draw (median error before, after), and bound / measured of all that is judged."""
    table, source, errors, bounds_after = write(out / "runs.csv", runs), random.Random(seed), [], []
    before = judged(horus, base, table)
    for _ in range(draws):
        drawn = set(source.sample(range(len(runs)), FOUR))
        few = write(out / "few.csv", [runs[i] for i in drawn])
        subprocess.run([horus, "calibrate", "--data", few, "--bundle", base, "--out", out / "moved.hbundle"], check=True,
                       capture_output=True)
        after = judged(horus, out / "moved.hbundle", table)
        left = [i for i in range(len(runs)) if i not in drawn]
        errors.append([statistics.mean(of[i][0] for i in left) for of in (before, after)])
        bounds_after += [after[i][1] for i in left]
    return errors, bounds_after


def strangers(horus, tables, out, smoke):
    rows = []
    for table in tables:
        with table.open(newline="", encoding="utf-8") as file:
            rows += [{**row, "step_time_us": ""} for row in csv.DictReader(file)
                     if row["mem_mib"] and row["campaign"] and row["framework"] != "tensorflow"]
    campaigns = sorted({row["campaign"] for row in rows})
    kept, ratios, errors, fours = {}, [], {}, []
    for campaign in campaigns if len(campaigns) > 2 else ():
        base, own = out / "base.hbundle", [row for row in rows if row["campaign"] == campaign]
        others = write(out / "others.csv", [row for row in rows if row["campaign"] != campaign])
        subprocess.run([horus, "train", "--data", others, "--bundle", "none", "--out", base, *(["--rounds", "0"] if smoke else [])],
                       check=True, capture_output=True)
        bound = [upper for _, upper in judged(horus, base, write(out / "own.csv", own))]
        kept[campaign] = 100 * statistics.mean(upper >= 1 for upper in bound)
        ratios += bound
        for gpu in sorted({row["gpu"] for row in own}):
            runs = [row for row in own if row["gpu"] == gpu]
            if len(runs) >= LEAST_RUNS:
                errors[gpu], after = after_four(horus, base, runs, out, SMOKE_DRAWS if smoke else DRAWS, SEED)
                fours += after
    if not errors:
        return []
    told = f"{len(ratios)} runs of {len(kept)} campaigns, each left out of training"
    each = "; ".join(f"{name} {value:.0f}" for name, value in kept.items())
    row = lambda metric, value, aim, better, baseline, protocol: {
        "metric": f"memory_stranger_{metric}", "value": value, "unit": "%", "aim": aim, "better": better, "baseline": baseline,
        "protocol": protocol}
    slack = lambda of: 100 * (statistics.median(of) - 1)
    drawn = f"{told}; {FOUR} runs of a GPU, {len(next(iter(errors.values())))} draws of each of {len(errors)}"
    medians = {gpu: [100 * statistics.median(e[k] for e in of) for k in (0, 1)] for gpu, of in errors.items()}
    worse = {gpu: 100 * statistics.mean(after > 1.1 * before for before, after in of) for gpu, of in errors.items()}
    return [
        row("kept", 100 * statistics.mean(r >= 1 for r in ratios), 90, "higher", each, told),
        row("kept_worst", min(kept.values()), 75, "higher", "", told),
        row("slack", slack(ratios), 45, "lower", "", f"{told}; bound over truth, median"),
        row("kept_after_4", 100 * statistics.mean(r >= 1 for r in fours), 90, "higher", "", drawn),
        row("slack_after_4", slack(fours), 20, "lower", "", f"{drawn}; bound over truth, median"),
        row("worse_after_4", statistics.mean(worse.values()), 5, "lower",
            "; ".join(f"{gpu.split(':')[-1]} {value:.0f}" for gpu, value in worse.items()),
            f"{drawn}; draws whose mean error grows by a tenth"),
        *(row(f"mape_after_4_{gpu.split(':')[-1]}", after, before, "lower", f"before {before:.1f} %", f"{drawn}; median draw")
          for gpu, (before, after) in medians.items())]


# Qwen of 2023 as qwen2 writes it: inner size, heads and layers by its config.json (QwenLM/Qwen@2df8e8ac); its adapters are
# of rank 64 on all linear layers, layers are checkpointed; LoRA runs under autocast, Q-LoRA and full training under DeepSpeed without
# (finetune/*.sh). Net -> hidden, layers, heads, inner size.
QWEN = {"Qwen-1.8B": (2048, 24, 16, 5504), "Qwen-7B": (4096, 32, 32, 11008), "Qwen-72B": (8192, 80, 64, 24576)}
ADAPTERS = ["--lora-rank", "64", "--lora-targets", "all-linear"]
QWEN_MICRO_BATCHES = 8  # of an iteration
QWEN_METHODS = {"LoRA": [*ADAPTERS, "--precision", "amp-bf16"], "Q-LoRA": [*ADAPTERS, "--weights", "int4", "--precision", "fp16"],
                "Full": [], "": []}


def qwen_asked(row, layers):
    """How `horus inspect` is asked for a row; none where it has no words for what ran."""
    if row["gpus"] != "1" or row["memory_gb"] == "OOM" or row["method"] not in QWEN_METHODS:
        return None
    if row["method"]:
        return ["--mode", "training", "--dim", f"seq={row['seq_len']}", "--optimizer", "adamw", "--checkpoint", str(layers),
                *QWEN_METHODS[row["method"]]]
    return ["--mode", "inference", "--framework", "pytorch", "--batch", row["batch"], "--dim", "seq=1", "--dim",
            f"past={row['seq_len']}", *(["--weights", row["precision"]] if row["precision"] != "bf16" else []),
            *(["--cache", "int8"] if row["kv_cache"] == "int8" else [])]


def language(horus, path, out):
    """Language models by their config.json, of which no bundle saw a run."""
    groups, steps = {}, []
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            hidden, layers, heads, inner = QWEN[row["net"]]
            asked = qwen_asked(row, layers)
            if asked is None:
                continue
            config = out / f"{row['net']}.json"
            config.write_text(json.dumps({
                "model_type": "qwen2", "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
                "num_key_value_heads": heads, "intermediate_size": inner, "vocab_size": 151936, "hidden_act": "silu",
                "max_position_embeddings": 32768, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}), encoding="utf-8")
            done = subprocess.run([horus, "inspect", config, "--gpu", "a100-80gb", "--json", "--explain", "--top", "0", *asked], check=True,
                                  capture_output=True, text=True)
            told = json.loads(done.stdout)["gpus"][0]
            measured = 1e9 / MIB * float(row["memory_gb"])
            groups.setdefault("trained" if row["method"] else "served", []).append(
                (told["memory_mib"] / measured - 1, told["memory_upper_mib"] / measured - 1))
            if row["method"] in ("LoRA", "Full"):  # Q-LoRA's kernels are those of GPTQ, which nobody has described
                step_us = 1e6 * float(row["speed"]) / QWEN_MICRO_BATCHES
                (why,) = [one for one in told["explanations"] if one["quantity"] == "step_time_us"]
                trees = why["fitted"] * math.prod(shift["factor"] for shift in why["shifts"])
                steps.append((told["step_time_us"] / step_us - 1, told["step_time_upper_us"] / step_us - 1, trees / step_us - 1))
    for name, found in groups.items():
        errors, slacks = sorted(abs(e) for e, _ in found), sorted(s for _, s in found)
        protocol = (f"{len(found)} runs of {', '.join(QWEN)} on one A100-80GB, {name} by PyTorch; GB taken as 10^9 bytes; "
                    "no bundle saw a run of these nets")
        for metric, value, aim, better in (("error", statistics.median(errors), None, "lower"),
                                           ("bound_kept", sum(s >= 0 for s in slacks) / len(slacks), 90, "higher"),
                                           ("slack", statistics.median(slacks), 25, "lower")):
            yield {"metric": f"memory_language_{name}_{metric}", "value": 100 * value, "unit": "%", "aim": aim, "better": better,
                   "baseline": "", "protocol": protocol}


    if steps:
        protocol = f"{len(steps)} runs of Qwen-1.8B and 7B that train all weights or LoRA, 256 to 8,192 tokens; A100-80GB, eager PyTorch"
        yield {"metric": "language_step_time", "value": 100 * statistics.median(abs(e) for e, _, _ in steps), "unit": "%", "aim": None,
               "better": "lower", "baseline": "", "protocol": protocol}
        yield {"metric": "language_step_time_of_trees", "value": 100 * statistics.median(abs(t) for *_, t in steps), "unit": "%", "aim": None,
               "better": "lower", "baseline": "", "protocol": "the same without the roofline"}
        yield {"metric": "language_step_time_bound_kept", "value": 100 * sum(s >= 0 for _, s, _ in steps) / len(steps), "unit": "%", "aim": None,
               "better": "higher", "baseline": "", "protocol": "the same"}


def main():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "horus"
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line")
    parser.add_argument("--data", help="folder with util_mem/*.csv")
    parser.add_argument("--graphs", type=pathlib.Path, action="append", help="folder of exported graphs; may be repeated")
    parser.add_argument("--smoke", action="store_true", help=f"{SMOKE_DRAWS} draws a GPU, without trees")
    parser.add_argument("--horus", default=str(ROOT / "build" / "release" / "bin" / "horus"))
    arguments = parser.parse_args()
    rows = []
    files = sorted(pathlib.Path(arguments.data).glob("util_mem/*.csv")) if arguments.data else []
    for path in files:
        cases, name = read(path), path.stem.removesuffix("_mem")
        known = [c for c in cases if (GRAPHS / f"{c.model}.onnx").exists()]
        if len({c.model for c in known}) >= 3:
            rows += measure(name, known, arguments.horus)
        rows += measure_shape(name, cases or read_named(path))
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        tables = datasets.convert_all(pathlib.Path(arguments.data), out, arguments.graphs or sorted(cache.glob("graphs*"))) if arguments.data else []
        rows += strangers(arguments.horus, tables, out, arguments.smoke)
        for path in sorted(pathlib.Path(arguments.data).glob("memory/qwen*.csv")) if arguments.data else []:
            rows += language(arguments.horus, path, out)
    if not rows:
        print("memory: SKIPPED: no table of measured memory under --data", file=sys.stderr)
    pathlib.Path(arguments.rows).write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
