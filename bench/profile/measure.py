#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures deep-learning jobs on one GPU: alone, and side by side. Needs PyTorch and nvidia-ml-py, nothing else.

  measure.py run --out DIR --minutes 10   run what says most in ten minutes; the same command again goes on
  measure.py nets                         the nets of the zoo, and which of them this machine can build
  measure.py pack DIR                     a copy of this folder with the zoo in it, for a machine without the repository

Exit status: 0 all runs made (out of memory is a result), 1 some failed, 2 it could not begin, 3 the GPU was lost or too
much failed, 4 the disk is full, 130 stopped. Finished runs are kept in every case.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import sys

import budget
import campaign
import gpu
import limits
import store as stores
import zoo

EXIT_FAILED_RUNS, EXIT_NOT_BEGUN, EXIT_LOST, EXIT_DISK, EXIT_STOPPED = 1, 2, 3, 4, 130
KINDS, MODES = ("isolated", "pairs", "triples"), ("time-slice", "mps")
NO_SPACES = re.compile(r"[^!-~]+")


class Stopped(BaseException):
    """A signal asks for the end."""


def listed(choices=None, kind=str):
    """A comma-separated option."""
    def parse(text):
        found = [kind(one) for one in text.split(",") if one]
        strange = [one for one in found if choices and one not in choices]
        if strange or not found:
            raise argparse.ArgumentTypeError(f"expected some of {', '.join(choices or ['values'])}, found '{text}'")
        return found
    return parse


def above_zero(kind):
    def parse(text):
        with contextlib.suppress(ValueError):
            if kind(text) > 0:
                return kind(text)
        raise argparse.ArgumentTypeError(f"expected a number above 0, found '{text}'")
    return parse


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure")
    run.add_argument("--out", required=True, type=pathlib.Path, help="folder of the campaign; an old one is continued")
    run.add_argument("--minutes", type=above_zero(float), default=10.0, help="time to spend (10)")
    run.add_argument("--net", action="append", default=[], metavar="NAME",
                     help="net of the zoo, or FILE.py:FUNCTION; may be repeated (the whole zoo)")
    run.add_argument("--family", default="own", help="model family of FILE.py:FUNCTION (own)")
    run.add_argument("--batches", type=listed(kind=above_zero(int)), help="comma-separated; with any of the next three: their product")
    run.add_argument("--precisions", type=listed(("fp32", "tf32", "amp", "amp-bf16", "fp16", "bf16")))
    run.add_argument("--optimizers", type=listed(("sgd", "momentum", "adam", "adamw", "adafactor")))
    run.add_argument("--modes", type=listed(("training", "inference")))
    run.add_argument("--kinds", type=listed(KINDS), default=list(KINDS), help="isolated,pairs,triples (all)")
    run.add_argument("--sharing", type=listed(MODES), default=list(MODES), help="time-slice,mps (both)")
    run.add_argument("--index", type=int, default=0, help="GPU, as NVML numbers them (0)")
    run.add_argument("--gpu", help="its name in the rows (from NVML: 'NVIDIA H200' is h200)")
    run.add_argument("--campaign", help="name of the campaign in the rows (gpu and month)")
    run.add_argument("--graphs-at", default="graphs", help="where the zoo's graphs lie, as seen from the rows; then none is copied (graphs)")
    run.add_argument("--in-use-ok", action="store_true", help="go on although others use the GPU")
    run.add_argument("--window", type=above_zero(float), default=limits.WINDOW_S, help="seconds measured at least (2)")
    run.add_argument("--steps", type=above_zero(int), default=limits.WINDOW_STEPS, help="steps measured at least (20)")
    run.add_argument("--warm", type=above_zero(float), default=limits.WARM_S, help="seconds of warm-up (1)")
    run.add_argument("--window-max", type=above_zero(float), default=limits.WINDOW_MAX_S, help="seconds measured at most (20)")
    run.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu is for tests")
    commands.add_parser("nets", help="list the zoo")
    commands.add_parser("pack", help="copy this folder with the zoo").add_argument("folder", type=pathlib.Path)
    return parser, parser.parse_args(argv)


def gpu_name(name):
    """NVML's name as the catalogue writes it: 'NVIDIA H200' -> h200."""
    plain = re.sub(r"^(nvidia|tesla|quadro|geforce)\s+", "", name.strip().lower())
    plain = re.sub(r"^(tesla|quadro|geforce)\s+", "", plain)
    return NO_SPACES.sub("-", plain)


def chosen_nets(options):
    runs = zoo.Runs(options.family, tuple(sorted(options.batches or (4, 16, 64))), "adam")
    chosen = zoo.choose(options.net, runs, pathlib.Path.cwd())
    names = [zoo.plain_name(net) for net in chosen]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise zoo.UnknownNet(f"two nets are called {', '.join(twice)}: their graphs and rows would mix")
    options.only = {name: getattr(options, name) for name in ("batches", "precisions", "optimizers", "modes")
                    if getattr(options, name)}
    return chosen


def buildable(chosen, progress):
    """The zoo's nets of which every package is here; says what is left out."""
    import importlib.util
    kept = {net: runs for net, runs in chosen.items()
            if all(importlib.util.find_spec(package) for package in runs.needs.split())}
    if len(kept) < len(chosen):
        left_out = [net for net in chosen if net not in kept]
        progress.say(f"left out, because torchvision is not installed: {', '.join(left_out)}")
    return kept


def environment(options, job):
    """What the manifest tells of one session."""
    return {"campaign": job.store.campaign, "gpu": job.description, "software": job.environment,
            "host": {"system": platform.system(), "kernel": platform.release(), "cores": os.cpu_count()},
            "plan": {**job.plan, "sample_period_s": gpu.SAMPLE_PERIOD_S}, "minutes": options.minutes,
            "kinds": options.kinds, "sharing": options.sharing, "notes": job.notes, "not_told": job.card.refusals}


def write_manifest(store, session, job, options, ended):
    path = store.folder / "manifest.json"
    manifest = {"format": 1, "sessions": []}
    if path.exists():
        with contextlib.suppress(ValueError):
            manifest = json.loads(path.read_text())
    sessions = [one for one in manifest["sessions"] if one["began"] != session]
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    sessions.append({"began": session, "written": now, "ended": ended, **environment(options, job)})
    outcomes = {}
    for run in store.runs:
        key = f"{run['kind']} {run['outcome']}"
        outcomes[key] = outcomes.get(key, 0) + 1
    store.replace("manifest.json", json.dumps({**manifest, "sessions": sessions, "runs": outcomes,
                                               "noise": store.noise()}, indent=1) + "\n")


def run(options, parser):
    try:
        chosen = chosen_nets(options)
    except (zoo.UnknownNet, FileNotFoundError) as error:
        parser.error(str(error))
    card = gpu.Gpu(options.index)
    if not options.in_use_ok:
        try:
            card.require_idle()
        except gpu.Busy as error:
            raise gpu.Busy(f"{error}; measurements beside others are not of the job alone (--in-use-ok goes on)") from None
    options.gpu = options.gpu or gpu_name(card.name())
    began = datetime.datetime.now(datetime.timezone.utc)
    name = NO_SPACES.sub("-", options.campaign or f"{options.gpu}-{began:%Y-%m}")
    store = stores.Store(options.out, name, options.graphs_at)
    clock = budget.Budget(options.minutes)
    progress = budget.Progress(clock)
    if store.runs:
        progress.say(f"{options.out}: {len(store.runs)} runs are there already; going on")
    job = campaign.Campaign(options, buildable(chosen, progress), card, store, clock, progress)
    session, ended = f"{began:%Y-%m-%dT%H:%M:%SZ}", "broke off"
    try:
        job.run(options.kinds, options.sharing)
        ended = "done"
    except Stopped:
        ended = "stopped by a signal"
        raise
    finally:
        ignore_signals()
        job.close()
        store.write_tables()
        write_manifest(store, session, job, options, ended)
    counts = f"{len(store.isolated())} isolated runs, {len(store.shared())} groups"
    progress.say(f"{options.out}: {counts}" + (f"; {len(job.failed)} runs failed in this session" if job.failed else ""))
    return EXIT_FAILED_RUNS if job.failed else 0


def list_nets():
    try:
        known, missing = zoo.definitions()
    except ModuleNotFoundError as error:
        known, missing = {}, {"every group": error.name}
    for net, runs in zoo.ZOO.items():
        state = "" if net in known else f"  (needs {runs.needs}, which is not installed)"
        print(f"{net:24} {runs.family:26} batches {','.join(map(str, runs.batches)):16} {runs.optimizer}{state}")
    families = {runs.family for net, runs in zoo.ZOO.items() if net in known}
    print(f"{len(known)} nets can be built here; {len(families)} families of the plan")
    for group, package in missing.items():
        print(f"nets/{group}: {package} is not installed")
    return 0


def pack(folder):
    """This folder's modules and the zoo's definitions and graphs, ready to be copied to another machine."""
    here, models = pathlib.Path(__file__).resolve().parent, zoo.zoo_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for module in sorted(here.glob("*.py")):
        shutil.copy(module, folder / module.name)
    for part, pattern in (("nets", "*.py"), ("graphs", "*.onnx")):
        target = folder / "zoo" / part
        target.mkdir(parents=True, exist_ok=True)
        for source in sorted((models / part).glob(pattern)):
            shutil.copy(source, target / source.name)
    print(folder)
    return 0


def on_signals():
    def end(number, _):
        raise Stopped(signal.Signals(number).name)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


def ignore_signals():
    """While the end is made, a second signal must not leave half of it undone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def main(argv=None):
    parser, options = arguments(argv)
    if options.command == "nets":
        return list_nets()
    if options.command == "pack":
        return pack(options.folder)
    on_signals()
    try:
        return run(options, parser)
    except (gpu.NoNvml, gpu.Busy) as error:
        code, said = EXIT_NOT_BEGUN, error
    except (gpu.GpuLost, campaign.GivenUp) as error:
        code, said = EXIT_LOST, f"{error}; finished runs are kept in {options.out}, the same command goes on"
    except stores.NotWritten as error:
        code, said = EXIT_DISK, error
    except Stopped as error:
        code, said = EXIT_STOPPED, f"stopped by {error}; finished runs are kept in {options.out}"
    print(f"measure.py: {said}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
