# SPDX-License-Identifier: Apache-2.0
"""Measures deep-learning jobs on one GPU: alone, and side by side. Needs PyTorch and nvidia-ml-py, nothing else.

  horus-profile plan --minutes 30           what would be measured in half an hour; needs no GPU
  horus-profile run --out DIR --minutes 30  measure what says most; the same command again goes on where it was
  horus-profile nets                        the nets of the zoo, and which of them this machine can build
  horus-profile pack DIR                    a copy of this folder with the zoo in it, for a machine without the repository
  horus-profile train --rows DIR --out DIR  at home: from rows to bundles, with the accuracy before and after

Exit status: 0 all runs made (out of memory is a result), 1 some failed, 2 it could not begin, 3 the GPU was lost, is used
by others or too much failed, 4 the disk is full, 130 stopped. Finished runs are kept in every case.
"""
import contextlib
import datetime
import importlib.util
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys

import budget
import campaign
import counters
import crew
import dry
import gpu
import limits
import options as command_line
import store as stores
import train
import zoo

EXIT_FAILED_RUNS, EXIT_NOT_BEGUN, EXIT_LOST, EXIT_DISK, EXIT_STOPPED = 1, 2, 3, 4, 130
MANIFEST_EVERY_S = 20.0
NO_SPACES = re.compile(r"[^!-~]+")


class Stopped(BaseException):
    """A signal asks for the end."""


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
    options.only = {name: getattr(options, name) for name in command_line.FIXED if getattr(options, name)}
    return chosen


def buildable(chosen, progress):
    """The zoo's nets of which every package is here; says what is left out."""
    needed = {package for runs in chosen.values() for package in runs.needs.split()} - {"torch"}
    missing = {package: why for package, why in ((one, why_missing(one)) for one in sorted(needed)) if why}
    kept = {net: runs for net, runs in chosen.items() if not missing.keys() & set(runs.needs.split())}
    if missing:
        reasons = "; ".join(f"{package} {why}" for package, why in missing.items())
        progress.say(f"left out, because {reasons}: {', '.join(net for net in chosen if net not in kept)}")
    return kept


def why_missing(package):
    """Why a package cannot be used: it is absent, or made for another PyTorch; none where it can."""
    if importlib.util.find_spec(package) is None:
        return "is not installed"
    try:
        done = subprocess.run([sys.executable, "-c", f"import {package}"], capture_output=True, text=True, errors="replace",
                              timeout=limits.START_S, check=False)
    except subprocess.TimeoutExpired:
        return f"cannot be imported within {limits.START_S:.0f} s"
    words = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return f"cannot be imported ({words[:200]})" if done.returncode else None


def environment(options, job):
    """What the manifest tells of one session."""
    return {"campaign": job.store.campaign, "gpu": options.description, "counters": job.probe.counters.name,
            "software": job.environment,
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
                                               "noise": store.noise(),
                                               "groups_dropped": store.dropped()}, indent=1) + "\n")


class NotBegun(RuntimeError):
    """Something that a run needs is not there."""


def require(options):
    """What would only be missed after minutes."""
    if importlib.util.find_spec("torch") is None:
        raise NotBegun(f"PyTorch is not installed for {sys.executable}: expected 1.13 or later")
    if options.train and not shutil.which(options.horus):
        raise NotBegun(f"--train: no command '{options.horus}'; --horus names the built one, or train at home")


def begin(options, chosen):
    """The campaign, ready to run."""
    require(options)
    card = gpu.Gpu(options.index)
    card.require_whole()
    if not options.in_use_ok:
        card.require_idle()
    options.gpu = options.gpu or gpu_name(card.name() or "unknown")
    month = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m")
    store = stores.Store(options.out, NO_SPACES.sub("-", options.campaign or f"{options.gpu}-{month}"), options.graphs_at)
    store.claim(options.gpu)
    clock = budget.Budget(options.minutes)
    progress = budget.Progress(clock)
    if store.runs:
        progress.say(f"{options.out}: {len(store.runs)} runs are there already; going on")
    options.description = card.describe()  # now: a GPU that is lost tells nothing
    probe = crew.Probe(card, gpu.Sampler(card), counters.of(card))
    return campaign.Campaign(options, buildable(chosen, progress), probe, store, clock, progress)


def run(options, chosen):
    job = begin(options, chosen)
    store, progress, began = job.store, job.progress, datetime.datetime.now(datetime.timezone.utc)
    session, ended, failure = f"{began:%Y-%m-%dT%H:%M:%SZ}", "done", None
    written = [job.budget.clock()]

    def keep():
        """The manifest as it is, now and then: whoever kills the profiler finds it beside the rows."""
        if job.budget.clock() - written[0] > MANIFEST_EVERY_S or len(store.runs) == 1:
            written[0] = job.budget.clock()
            write_manifest(store, session, job, options, "not yet")

    job.after_run = keep
    try:
        job.run(options.kinds, options.sharing)
    except BaseException as error:
        ended, failure = "stopped by a signal" if isinstance(error, Stopped) else "broke off", error
    on_signals(signal.SIG_IGN)
    job.close()
    try:
        store.write_tables()
        write_manifest(store, session, job, options, ended)
    except stores.NotWritten as error:
        failure = failure or error  # what came first says more
    on_signals(signal.SIG_DFL)
    if failure:
        raise failure
    counts = f"{len(store.isolated())} isolated runs, {len(store.shared())} groups"
    progress.say(f"{options.out}: {counts}" + (f"; {len(job.failed)} runs failed in this session" if job.failed else ""))
    if options.train:
        trained = train.run(train.options_for(options.out, options.out / "trained", options.horus))
        return trained or (EXIT_FAILED_RUNS if job.failed else 0)
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
        print(f"nets/{group}: left out for want of {package}")
    return 0


def pack(folder):
    """This folder's modules and the zoo's definitions and graphs, ready to be copied to another machine."""
    here, models = pathlib.Path(__file__).resolve().parent, zoo.zoo_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for part in (here / "horus-profile", *sorted(here.glob("*.py")), *train.BUILT_INS[:1]):
        shutil.copy(part, folder / part.name)
    for part, pattern in (("nets", "*.py"), ("graphs", "*.onnx")):
        target = folder / "zoo" / part
        target.mkdir(parents=True, exist_ok=True)
        for source in sorted((models / part).glob(pattern)):
            shutil.copy(source, target / source.name)
    nvml = importlib.util.find_spec("pynvml")
    if nvml and nvml.origin and nvml.origin.endswith("pynvml.py"):  # one file; for a machine without it
        (folder / "nvml").mkdir(exist_ok=True)
        shutil.copy(nvml.origin, folder / "nvml")
    print(folder)
    return 0


def on_signals(do):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, do)


def stop(number, _):
    on_signals(signal.SIG_IGN)  # while the end is made, a second signal must not leave half of it undone
    raise Stopped(signal.Signals(number).name)


def main(argv=None):
    parser, options = command_line.arguments(argv, __doc__)
    if options.command == "nets":
        return list_nets()
    if options.command == "pack":
        return pack(options.folder)
    if options.command == "train":
        return train.run(options)
    try:
        chosen = chosen_nets(options)
    except (zoo.UnknownNet, FileNotFoundError) as error:
        parser.error(str(error))
    if options.command == "plan":
        dry.show(options, chosen)
        return 0
    on_signals(stop)
    kept = f"finished runs are kept in {options.out}"
    try:
        return run(options, chosen)
    except (NotBegun, gpu.NoNvml, gpu.NotWhole, stores.NotTheirs) as error:
        code, said = EXIT_NOT_BEGUN, error
    except gpu.Busy as error:
        code = EXIT_LOST if options.out.exists() else EXIT_NOT_BEGUN
        said = f"{error}; measurements beside others are not of the job alone (--in-use-ok goes on); {kept}"
    except (gpu.GpuLost, campaign.GivenUp) as error:
        code, said = EXIT_LOST, f"{error}; {kept}, the same command goes on"
    except stores.NotWritten as error:
        code, said = EXIT_DISK, error
    except OSError as error:  # no processes or no temporary files to be had
        code, said = EXIT_LOST, f"{error}; {kept}, the same command goes on"
    except Stopped as error:
        code, said = EXIT_STOPPED, f"stopped by {error}; {kept}"
    print(f"horus-profile: {said}", file=sys.stderr)
    return code
