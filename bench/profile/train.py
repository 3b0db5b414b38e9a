# SPDX-License-Identifier: Apache-2.0
"""From the rows of a campaign to a predictor and an interference model of this GPU, with what they gain.

Runs at home, with the built `horus` command. Before: what the command has built in (or the bundle given) on these rows.
After: trained on these rows, each net (or family) left out in turn. Writes demand.hbundle, pairs.hbundle and accuracy.json;
what too few rows measure is left out and said, the rest is trained.
"""
import argparse
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# What `horus` has built in: beside this file in a packed copy, else in the repository.
BUILT_INS = [path for path in (HERE / "default.hbundle", HERE.parent.parent / "src" / "predict" / "default.hbundle")
             if path.exists()]
COMMAND = os.environ.get("HORUS_COMMAND") or "horus"  # `horus profile` names itself
BAD_INPUT = 2  # its exit status
GROUPS_AT_LEAST = 3  # nets or families; fewer cannot be left out in turn
MODELS = ("horus", "utilisation")  # what is trained, and a baseline that knows utilisation alone
PLAIN = {"model": "net"}  # what a dataset's column `net` is called by --leave
PAIRS_AT_LEAST = 12  # fewer say nothing of a pair left out


class Refused(RuntimeError):
    """The rows cannot be used for something; the text is for the user."""


class CannotRun(RuntimeError):
    """The command cannot be run at all."""


def horus(options, *arguments):
    """What the command prints, or Refused, or CannotRun; GPU types of the user's are told to every call."""
    files = [part for file in options.gpus_file for part in ("--gpus-file", file)]
    line = [str(part) for part in (options.horus, *arguments, *files)]
    try:
        done = subprocess.run(line, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CannotRun(f"--horus {options.horus}: {error.strerror}") from None
    if done.returncode:
        said = done.stderr.strip()[-600:]
        raise Refused(re.sub("^horus: ", "", said)) if done.returncode == BAD_INPUT else CannotRun(
            f"`{' '.join(line[1:3])}` failed ({done.returncode}): {said}")
    return done.stdout


def accuracy(options, *arguments):
    """Quantity -> figures of the method 'horus', of `horus evaluate`; and what it left out: [{"quantity", "reason"}]."""
    found = json.loads(horus(options, "evaluate", *arguments, "--json"))
    figures = {}
    for one in found["evaluations"]:
        for method in one["methods"]:
            if method["method"] == "horus":
                figures[one["quantity"]] = {
                    "rows": one["rows_measured"], "coverage_pct": one["coverage_observed_pct"],
                    **{name: method[name] for name in ("mape_pct", "median_pct", "spearman")}}
    return figures, found["skipped"]


def pair_accuracy(options, *arguments):
    """[model, sharing mode and its figures], of `horus evaluate --pairs`."""
    models = [part for model in MODELS for part in ("--model", model)]
    found = json.loads(horus(options, "evaluate", *arguments, *models, "--json"))
    return [{name: one[name] for name in ("model", "sharing_mode", "rows_measured", "mape_pct", "median_pct", "spearman",
                                          "coverage_observed_pct")} for one in found["evaluations"]]


class LeftOut:
    """What could not be trained or judged, and why; said once each, and kept for accuracy.json."""

    def __init__(self, say):
        self.say, self.told = say, []

    def note(self, what, why):
        if (what, why) not in self.told:
            self.told.append((what, why))
            self.say(f"left out: {what}: {why}")

    def attempt(self, what, make, otherwise):
        """What `make` gives, or `otherwise` where it is refused."""
        try:
            return make()
        except Refused as error:
            self.note(what, str(error))
            return otherwise


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
    heads = ["before", *(f"{PLAIN.get(left, left)} left out" for left in found["after"])]
    say(f"{'MAPE, median':18}{'rows':>6}" + "".join(f"{head:>24}" for head in heads) + f"{'rank':>7}")
    for quantity in dict.fromkeys(quantity for way in ways for quantity in way):
        last = next(way[quantity] for way in reversed(ways) if quantity in way)
        figures = [shown(way.get(quantity, {}).get(name), width, "%") for way in ways
                   for name, width in (("mape_pct", 14), ("median_pct", 10))]
        say(f"{quantity:18}{last['rows']:6}" + "".join(figures) + shown(last["spearman"], 7, ""))


def demand(options, say, left_out):
    """The report's part, and the bundle; none where no quantity was measured often enough."""
    rows = options.rows / "dataset.csv"
    measured, nets = count(rows, "net")
    if nets < GROUPS_AT_LEAST:
        raise Refused(f"{rows}: {nets} nets; expected {GROUPS_AT_LEAST} at least, so that each can be left out")
    found = {"rows": measured, "nets": nets, "after": {}}
    rounds = ("--rounds", options.rounds)
    ways = {"before": ("--bundle", options.bundle)} if options.bundle else {}
    for left in ["model"] + (["family"] if count(rows, "family")[1] >= GROUPS_AT_LEAST else []):
        ways[left] = ("--leave", left, *rounds)
    for way, more in ways.items():
        what = "demands before" if way == "before" else f"demands, each {PLAIN.get(way, way)} left out"
        figures, skipped = left_out.attempt(what, lambda: accuracy(options, "--data", rows, *more), ({}, []))
        for one in skipped:
            left_out.note(what, one["reason"])
        (found if way == "before" else found["after"])[way] = figures
    bundle = options.out / "demand.hbundle"
    data = [part for path in (rows, *options.also) for part in ("--data", path)]
    done = left_out.attempt("demands", lambda: json.loads(horus(options, "train", *data, *rounds, "--out", bundle, "--json")),
                            None)
    if done is None:
        return found, None
    for quantity in done["left_out"]:
        left_out.note("demands", f"{quantity}: too few rows measure it")
    say(f"{bundle}: from {measured} rows of {nets} nets" + (f" and {len(options.also)} further tables" if options.also else ""))
    table(found, say)
    return found, bundle


def jobs_by_net(source, target):
    """The table of jobs with the net in the place of its family, so that nets can be left out; graphs by whole paths."""
    with open(source, newline="", encoding="utf-8") as file:
        jobs = list(csv.DictReader(file))
    for job in jobs:
        path = (source.parent / job["graph"]).resolve()
        job["graph"], job["family"] = str(path), path.stem
    with open(target, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, jobs[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(jobs)


def interference(options, bundle, say, left_out):
    """Before: the built-in model on the built-in demands. After: trained, on the demands of the new bundle."""
    pairs, jobs = options.rows / "pairs.csv", options.rows / "jobs.csv"
    measured, _ = count(pairs, "job_a")
    if measured < PAIRS_AT_LEAST:
        say(f"{pairs}: {measured} pairs; no interference model from fewer than {PAIRS_AT_LEAST}")
        return {"pairs": measured, "trained": False}
    basis = ("--pairs", pairs, "--jobs", jobs)
    old = ("--bundle", options.bundle) if options.bundle else ()
    new = ("--bundle", bundle) if bundle else old
    target = options.out / "pairs.hbundle"
    trained = left_out.attempt("slowdowns", lambda: horus(options, "train", *basis, *new, "--out", target), None) is not None
    if trained:
        say(f"{target}: from {measured} pairs")
    found = {"pairs": measured, "trained": trained, "before": {}, "after": {}}
    with tempfile.TemporaryDirectory() as folder:
        by_net = pathlib.Path(folder, "jobs.csv")
        jobs_by_net(jobs, by_net)
        for left, table_of_jobs in (("pair", jobs), ("net", by_net), ("family", jobs)):
            what = f"slowdowns, each {left} left out"
            groups = count(table_of_jobs, "family")[1]
            if left != "pair" and groups < GROUPS_AT_LEAST:
                left_out.note(what, f"expected {GROUPS_AT_LEAST} at least, found {groups}")
                continue
            leave = ("--pairs", pairs, "--jobs", table_of_jobs, "--leave", "pair" if left == "pair" else "family")
            found["before"][left] = left_out.attempt(f"{what}, before", lambda: pair_accuracy(options, *leave, *old, "--as-is"), [])
            found["after"][left] = left_out.attempt(what, lambda: pair_accuracy(options, *leave, *new), [])
    pair_table(found, say)
    return found


def pair_table(found, say):
    """A line for each mode and what was left out: before, after, and by utilisation alone: MAPE and rank."""
    say(f"{'slowdown: MAPE, rank':32}{'rows':>6}{'before':>18}{'after':>18}{'utilisation':>18}")
    for left, after in found["after"].items():
        before = {(one["model"], one["sharing_mode"]): one for one in found["before"][left]}
        known = {(one["model"], one["sharing_mode"]): one for one in after}
        for mode in dict.fromkeys(mode for _, mode in (*before, *known)):
            ways = [before.get((MODELS[0], mode)), known.get((MODELS[0], mode)), known.get((MODELS[1], mode))]
            figures = [shown(one and one[name], width, unit) for one in ways
                       for name, width, unit in (("mape_pct", 11, "%"), ("spearman", 7, ""))]
            rows = next(one["rows_measured"] for one in ways if one)
            say(f"{f'{mode}, {left} left out':32}{rows:6}" + "".join(figures))


def add_arguments(parser):
    parser.add_argument("--rows", required=True, type=pathlib.Path, help="folder that run wrote")
    parser.add_argument("--horus", default=COMMAND, help=f"the built command ({COMMAND})")
    parser.add_argument("--out", type=pathlib.Path, help="folder of the bundles (trained, in that of the rows)")
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
        options.out = options.out or options.rows / "trained"
        options.out.mkdir(parents=True, exist_ok=True)
        left_out = LeftOut(print)
        found, bundle = demand(options, print, left_out)
        pairs = interference(options, bundle, print, left_out)
        told = [{"what": what, "why": why} for what, why in left_out.told]
        (options.out / "accuracy.json").write_text(
            json.dumps({"demand": found, "interference": pairs, "left_out": told}, indent=1) + "\n")
        if not bundle and not pairs["trained"]:
            raise Refused(f"{options.rows}: nothing could be trained")
    except (Refused, CannotRun) as error:
        print(f"horus-profile: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"horus-profile: {options.out}: {error.strerror}", file=sys.stderr)
        return 1
    return 0
