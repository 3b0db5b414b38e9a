# SPDX-License-Identifier: Apache-2.0
"""From the rows of a campaign to a predictor and an interference model of this GPU, with what they gain.

Runs at home, with the built `horus` command. Before: the bundle given (or what the command has built in) on these rows.
After: trained on these rows, each net (or family) left out in turn. Writes demand.hbundle, pairs.hbundle and accuracy.json.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# What `horus` has built in: beside this file in a packed copy, else in the repository.
BUILT_INS = [path for path in (HERE / "default.hbundle", HERE.parent.parent / "src" / "predict" / "default.hbundle")
             if path.exists()]
GROUPS_AT_LEAST = 3  # nets or families; fewer cannot be left out in turn
MODELS = ("horus", "utilisation")  # what is trained, and a baseline that knows utilisation alone
PAIRS_AT_LEAST = 12  # fewer say nothing of a pair left out


class Refused(RuntimeError):
    """The command, or the rows, cannot be used; the text is for the user."""


def horus(options, *arguments):
    """What the command prints, or Refused; GPU types of the user's are told to every call."""
    files = [part for file in options.gpus_file for part in ("--gpus-file", file)]
    line = [str(part) for part in (options.horus, *arguments, *files)]
    try:
        done = subprocess.run(line, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Refused(f"--horus {options.horus}: {error.strerror}") from None
    if done.returncode:
        raise Refused(f"`{' '.join(line[1:3])}` failed ({done.returncode}): {done.stderr.strip()[-600:]}")
    return done.stdout


def accuracy(options, *arguments):
    """Quantity -> figures of the method 'horus', of `horus evaluate`."""
    found = json.loads(horus(options, "evaluate", *arguments, "--json"))
    figures = {}
    for one in found["evaluations"]:
        for method in one["methods"]:
            if method["method"] == "horus":
                figures[one["quantity"]] = {
                    "rows": one["rows_measured"], "coverage_pct": one["coverage_observed_pct"],
                    **{name: method[name] for name in ("mape_pct", "median_pct", "spearman")}}
    return figures


def pair_accuracy(options, *arguments):
    """[model, sharing mode and its figures], of `horus evaluate --pairs`."""
    models = [part for model in MODELS for part in ("--model", model)]
    found = json.loads(horus(options, "evaluate", *arguments, *models, "--json"))
    return [{name: one[name] for name in ("model", "sharing_mode", "leave", "rows_measured", "mape_pct", "median_pct",
                                          "spearman", "coverage_observed_pct")} for one in found["evaluations"]]


def count(path, column):
    """Rows of a table, and the different values of a column."""
    if not path.exists():
        raise Refused(f"{path}: expected a table that `horus-profile run` wrote")
    with open(path, newline="", encoding="utf-8") as file:
        values = [row[column] for row in csv.DictReader(file)]
    return len(values), len(set(values))


def shown(value, width, unit):
    """A figure of a table; a dash where there is none (no rank among equal values, for one)."""
    text = "-" if value is None else f"{value:.1f}{unit}" if unit else f"{value:.2f}"
    return f"{text:>{width}}"


def table(found, say):
    """Before, and after with each net and each family left out in turn: MAPE, median; rank of the last."""
    ways = [found.get("before", {}), *found["after"].values()]
    heads = ["before", *(f"{'net' if left == 'model' else left} left out" for left in found["after"])]
    say(f"{'MAPE, median':18}{'rows':>6}" + "".join(f"{head:>24}" for head in heads) + f"{'rank':>7}")
    for quantity, last in ways[-1].items():
        figures = [shown(way.get(quantity, {}).get(name), width, "%") for way in ways
                   for name, width in (("mape_pct", 14), ("median_pct", 10))]
        say(f"{quantity:18}{last['rows']:6}" + "".join(figures) + shown(last["spearman"], 7, ""))


def demand(options, say):
    rows = options.rows / "dataset.csv"
    measured, nets = count(rows, "net")
    if nets < GROUPS_AT_LEAST:
        raise Refused(f"{rows}: {nets} nets; expected {GROUPS_AT_LEAST} at least, so that each can be left out")
    found = {"rows": measured, "nets": nets}
    if options.bundle:
        found["before"] = accuracy(options, "--data", rows, "--bundle", options.bundle)
    data = [part for path in (rows, *options.also) for part in ("--data", path)]
    rounds = ("--rounds", options.rounds)
    leave = ["model"] + (["family"] if count(rows, "family")[1] >= GROUPS_AT_LEAST else [])
    found["after"] = {left: accuracy(options, "--data", rows, "--leave", left, *rounds) for left in leave}
    bundle = options.out / "demand.hbundle"
    horus(options, "train", *data, *rounds, "--out", bundle)
    say(f"{bundle}: from {measured} rows of {nets} nets" + (f" and {len(options.also)} further tables" if options.also else ""))
    before = found.get("before", {})
    table(found, say)
    return found, bundle


def interference(options, bundle, say):
    pairs, jobs = options.rows / "pairs.csv", options.rows / "jobs.csv"
    measured, _ = count(pairs, "job_a")
    if measured < PAIRS_AT_LEAST:
        say(f"{pairs}: {measured} pairs; no interference model from fewer than {PAIRS_AT_LEAST}")
        return {"pairs": measured}
    basis = ("--pairs", pairs, "--jobs", jobs, "--bundle", bundle)
    target = options.out / "pairs.hbundle"
    horus(options, "train", *basis, "--out", target)
    say(f"{target}: from {measured} pairs")
    apart = "family" if count(jobs, "family")[1] >= GROUPS_AT_LEAST else "job"
    found = {left: pair_accuracy(options, *basis, "--leave", left) for left in ("pair", apart)}
    for left, figures in found.items():
        for one in figures:
            say(f"slowdown, each {left} left out, {one['sharing_mode']}, {one['model']}:"
                f"{shown(one['mape_pct'], 7, '%')}{shown(one['spearman'], 7, '')}")
    return {"pairs": measured, "left_out": found}


def add_arguments(parser):
    parser.add_argument("--rows", required=True, type=pathlib.Path, help="folder that run wrote")
    parser.add_argument("--horus", default="horus", help="the built command (horus)")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--bundle", type=pathlib.Path, default=next(iter(BUILT_INS), None),
                        help="what was used before (the repository's built-in bundle)")
    parser.add_argument("--also", nargs="*", default=[], type=pathlib.Path, help="further datasets to train on")
    parser.add_argument("--gpus-file", nargs="*", default=[], type=pathlib.Path, help="GPU types of your own (docs/files.md)")
    parser.add_argument("--rounds", type=int, default=100, help="trees a quantity at most (100)")


def options_for(rows, out, command):
    """The options with which `run --train` calls."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(["--rows", str(rows), "--out", str(out), "--horus", command])


def run(options):
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        found, bundle = demand(options, print)
        pairs = interference(options, bundle, print)
        (options.out / "accuracy.json").write_text(json.dumps({"demand": found, "interference": pairs}, indent=1) + "\n")
    except Refused as error:
        print(f"horus-profile: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"horus-profile: {options.out}: {error.strerror}", file=sys.stderr)
        return 1
    return 0
