# SPDX-License-Identifier: Apache-2.0
"""Runs the plan: isolated runs, then groups side by side, each result written at once; ends what it started."""
import contextlib
import os
import shutil
import time

import budget as budgets
import crew
import design
import gpu
import limits
import mps
import store as stores
import zoo

ROUND = 36  # isolated runs planned at a time: an end in between leaves every family touched
SPARE_CORES = 4  # with fewer, a worker that starts beside a measurement would disturb it
TROUBLE, TROUBLE_OF_A_NET = {"died": 3, "timeout": 3, "error": 2}, 6  # two deaths or three errors end a net's runs
FAILURES_IN_A_ROW = 12  # then nothing more is expected of this GPU
SETTLE_S, SETTLE_MIB = 3.0, 16  # a process that ended gives its memory back within this
SHARE_ISOLATED, SHARE_FIRST_MODE = 0.5, 0.5  # of the time left, where several kinds of runs are asked for
TRIPLES_SHARE = 0.25  # of the time of groups
SIZES = {"pairs": 2, "triples": 3}
AMPERE, AMPERE_PRECISIONS = (8, 0), ("tf32", "bf16", "amp-bf16")  # before, PyTorch computes or refuses something else
EXCLUSIVE_PROCESS = 3  # nvmlComputeMode_t: one process alone may open a context


class GivenUp(RuntimeError):
    """Too much fails for the rest to be worth the time."""


class Campaign:
    """`hands` starts processes and measures; what else it must offer is that of this module's crew and mps."""

    def __init__(self, options, chosen, probe, store, budget, progress, hands=crew, mps_daemon=mps.Mps):
        self.options, self.chosen, self.store, self.budget, self.progress = options, chosen, store, budget, progress
        self.hands, self.mps_daemon = hands, mps_daemon
        self.probe, self.card, self.sampler = probe, probe.gpu, probe.sampler
        self.idle_mib = self.card.used_mib()
        self.workers, self.spare, self.environment, self.notes = [], None, {}, {}
        self.failures, self.failed = 0, []
        self.after_run = lambda: None
        self.plan = limits.plan(options.window, options.steps, options.warm, options.window_max)
        # On a machine of several GPUs a worker, and an MPS daemon, sees the chosen one alone.
        several = self.card.count > 1 and options.device == "cuda"
        self.seen = {"CUDA_VISIBLE_DEVICES": self.card.uuid()} if several else {}
        self.apart = {}  # what keeps a process from being a client of somebody's MPS daemon
        if mps.others_daemon():
            self.apart = {mps.FOLDER_VARIABLE: mps.NO_FOLDER}
            self.notes["mps of others"] = f"a daemon listens in {mps.others_daemon()}; left alone, and no run is its client"

    # Workers.

    def new_worker(self, more=None, device=None):
        worker = self.hands.Worker(device or self.options.device, {**self.apart, **self.seen, **(more or {})})
        self.workers.append(worker)
        return worker

    def release(self, worker):
        worker.end()
        self.workers.remove(worker)

    def take_worker(self):
        worker, self.spare = self.spare or self.new_worker(), None
        if not worker.alive:
            self.release(worker)
            worker = self.new_worker()
        self.settle()
        try:
            worker.wake(self.sampler.check)
        except crew.Failed as error:
            raise GivenUp(f"no process can use the GPU: {error}") from None
        self.environment = worker.awake
        if (os.cpu_count() or 1) > SPARE_CORES:
            self.spare = self.new_worker()
        return worker

    def settle(self):
        """Waits until the processes before have given their memory back; what is in use then is not ours."""
        until = time.monotonic() + SETTLE_S
        while (self.card.used_mib() or 0) > (self.idle_mib or 0) + SETTLE_MIB and time.monotonic() < until:
            time.sleep(gpu.SAMPLE_PERIOD_S)
        self.probe.baseline_mib = self.card.used_mib()

    def measure(self, workers, jobs):
        """One measurement, no longer than the time that is left allows; raises gpu.Busy when somebody came to the GPU."""
        left = self.budget.left()
        plan = {**self.plan, "max_s": max(self.plan["min_s"], min(self.plan["max_s"], left)),
                "patience_s": max(limits.PATIENCE_S, min(limits.LOAD_S, left))}
        results, seen = self.hands.measure(workers, jobs, self.probe, plan)
        folders = {worker.environment.get(mps.FOLDER_VARIABLE, mps.NO_FOLDER) for worker in workers}
        under_mps = folders != {mps.NO_FOLDER}  # its server is listed, too
        others = {} if self.options.in_use_ok or under_mps else self.card.strangers([worker.pid for worker in workers])
        if others:
            raise gpu.Busy(f"GPU {self.card.index} is now in use by {self.card.named(others)}; the run beside is dropped")
        if seen.get("sample_hz") and seen["sample_hz"] < gpu.SLOW_HZ:
            self.notes["nvml"] = f"it answers slowly: {seen['sample_hz']} samples a second in {jobs[0].name}"
        return results, seen

    def close(self):
        """Ends everything that was started, whatever happened before."""
        self.sampler.stop()
        self.probe.counters.close()
        for worker in self.workers:
            with contextlib.suppress(Exception):
                worker.kill()
        self.workers, self.spare = [], None

    # Recording.

    def common(self, kind, outcome, took):
        return {"kind": kind, "outcome": outcome, "gpu": self.options.gpu, "took_s": round(took, 2),
                "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}

    def record(self, run, what):
        self.store.add(run)
        bad = run["outcome"] not in ("ok", "oom")
        self.failures = self.failures + 1 if bad else 0
        if bad:
            self.failed.append(what)
            self.progress.say(f"{what}: {run['outcome']}: {run['error']}" + (f" (at {run['at_line']})" if run.get("at_line")
                                                                               else ""))
        self.progress.show(run["kind"], what + ("" if run["outcome"] == "ok" else f": {run['outcome']}"))
        self.after_run()
        if self.failures >= FAILURES_IN_A_ROW:
            raise GivenUp(f"{self.failures} runs failed one after the other, the last with: {run['error']}")

    def about(self, job):
        return {"job": job.name, "net": job.net, "net_name": zoo.plain_name(job.net), "family": job.family,
                "batch": job.batch, "dims": job.dims_text, "mode": job.mode, "precision": job.precision,
                "optimizer": job.optimizer}

    # Graphs.

    def write_graphs(self):
        """A graph for every net, before the first run; nets that give none are left out and said."""
        exporter, missing = None, []
        for net, runs in self.chosen.items():
            target = self.store.folder / "graphs" / f"{zoo.plain_name(net)}.onnx"
            if target.exists() or ":" not in net and self.store.graphs_at != "graphs":
                continue
            self.store.make_folder(target.parent)
            ready = None if ":" in net else zoo.zoo_folder() / "graphs" / f"{net}.onnx"
            if ready and ready.exists():
                copy(ready, target, len(self.store.runs))
                continue
            exporter = exporter or self.new_worker({"CUDA_VISIBLE_DEVICES": ""}, "cpu")
            job = design.isolated_jobs({net: runs}, self.options.only)[0]
            if not self.export(exporter, job, target):
                missing.append(net)
                self.release(exporter)
                exporter = None
        if exporter:
            self.release(exporter)
        for net in missing:
            del self.chosen[net]

    def export(self, exporter, job, target):
        began = self.budget.clock()
        try:
            if not exporter.began:
                exporter.expect("ready", limits.START_S)
                exporter.began = True
            exporter.tell("export", job=job.order(), path=str(target))
            exporter.expect("exported", limits.EXPORT_S)
            return True
        except (crew.Failed, crew.Died) as error:
            self.record({**self.common("export", getattr(error, "outcome", "died"), self.budget.clock() - began),
                         **self.about(job), "error": str(error), "at_line": getattr(error, "at", "")}, job.name)
            return False

    # Isolated runs.

    def possible(self):
        """The isolated jobs of the plan that this GPU can run as their precision says."""
        large, capability = (self.card.total_mib() or 0) > design.LARGE_CARD_MIB, self.card.capability()
        jobs = design.isolated_jobs(self.chosen, self.options.only, large)
        without = {} if capability is None or capability >= AMPERE else AMPERE_PRECISIONS
        if any(job.precision in without for job in jobs):
            self.notes["precisions"] = f"left out, from compute capability 8.0 on only: {', '.join(without)}"
        return [job for job in jobs if job.precision not in without]

    def waiting(self):
        """Isolated jobs that were not tried yet, the most telling first; none larger than one that did not fit."""
        tried = {run["job"] for run in self.store.runs if run["kind"] == "isolated"}
        full = [run for run in self.store.runs if run["kind"] == "isolated" and run["outcome"] == "oom"]
        trouble = {}
        for run in self.store.runs:
            if run["kind"] == "isolated":
                trouble[run["net"]] = trouble.get(run["net"], 0) + TROUBLE.get(run["outcome"], 0)
        return [job for job in self.possible() if job.name not in tried and trouble.get(job.net, 0) < TROUBLE_OF_A_NET
                and not any(hopeless(job, run) for run in full)]

    def isolated(self, until):
        """Rounds of new runs, each followed by the repeats that are due."""
        while True:
            jobs = self.waiting()[:min(ROUND, self.budget.fits("isolated", until))]
            if not self.run_nets(jobs, until) or not self.run_nets(self.due_again(), until, 1) or not jobs:
                return

    def run_nets(self, jobs, until, repeat=0):
        """Net by net; false when the time is up."""
        return all(self.run_net(of_net, until, repeat) for _, of_net in design.by_net(jobs))

    def due_again(self):
        """Finished jobs to be run once more, in another process, for the noise."""
        specs = {job.name: job for job in self.possible()}
        again = {run["job"] for run in self.store.runs if run["kind"] == "isolated" and run["repeat"]}
        names = [run["job"] for run in self.store.isolated() if not run["repeat"] and run["job"] in specs]
        return [specs[name] for name in design.repeats(names) if name not in again]

    def run_net(self, jobs, until, repeat=0):
        """Runs the jobs of one net in one process; false when the time is up."""
        worker, trouble, full = None, 0, []
        try:
            for job in jobs:
                if self.budget.fits("isolated", until) < 1:
                    return False
                if any(hopeless(job, run) for run in full) or trouble >= TROUBLE_OF_A_NET:
                    continue
                began = self.budget.clock()  # a new process is a cost of its first run
                if worker is None or not worker.alive:
                    if worker:
                        self.release(worker)
                        worker = None
                    worker = self.take_worker()
                outcome = self.run_isolated(worker, job, repeat, began)
                trouble += TROUBLE.get(outcome, 0)
                full += [self.store.runs[-1]] if outcome == "oom" else []
            return True
        finally:
            if worker:
                self.release(worker)

    def run_isolated(self, worker, job, repeat, began):
        try:
            (result,), seen = self.measure([worker], [job])
        except crew.Failed as error:
            took = self.budget.clock() - began
            self.record({**self.common("isolated", error.outcome, took), **self.about(job), "repeat": repeat,
                         "error": str(error), "at_line": error.at}, job.name)
            return error.outcome
        took = self.budget.clock() - began
        self.budget.spent("isolated", took)
        total = seen["process_mib"] or self.probe.beyond_baseline(seen["device_used_mib"]) or None
        self.record({**self.common("isolated", "ok", took), **self.about(job), "repeat": repeat, **tidy(result), **seen,
                     "mem_mib": total}, job.name)
        return "ok"

    # Groups.

    def shared(self, sizes, modes, until):
        """Pairs and triples in each sharing mode; the time of a mode that cannot be had goes to the others."""
        if self.spare:
            self.release(self.spare)
            self.spare = None
        for place, mode in enumerate(modes):
            last = place == len(modes) - 1
            end = until if last else self.budget.moment(SHARE_FIRST_MODE)
            if mode == "time-slice":
                self.time_sliced(sizes, end)
                continue
            try:
                with self.mps_daemon(self.seen) as daemon:
                    self.notes["mps"] = "started"
                    self.shared_in(mode, sizes, daemon.environment, end)
            except mps.NotStarted as error:
                self.notes["mps"] = f"could not be started: {error}"
                self.progress.say(f"mps {self.notes['mps']}")
                if "time-slice" in modes:
                    self.time_sliced(sizes, until)

    def time_sliced(self, sizes, until):
        if self.card.compute_mode() == EXCLUSIVE_PROCESS:
            self.notes["time-slice"] = "the GPU's compute mode lets one process in: EXCLUSIVE_PROCESS, left as it is"
            self.progress.say(f"no groups in time slices: {self.notes['time-slice']}")
            return
        self.shared_in("time-slice", sizes, {}, until)

    def shared_in(self, mode, sizes, environment, end):
        for place, size in enumerate(sizes):
            last = place == len(sizes) - 1
            until = end if last else self.budget.clock() + (1 - TRIPLES_SHARE) * self.budget.left(end)
            team = []
            try:
                self.groups_of(mode, size, environment, team, until)
            finally:
                for worker in team:
                    self.release(worker)

    def groups_of(self, mode, size, environment, team, until):
        while self.budget.fits("shared", until) >= 1:
            batch = self.next_groups(mode, size, min(design.REPEAT_EVERY, self.budget.fits("shared", until)))
            if not batch:
                return
            for group, repeat in batch:
                if self.budget.fits("shared", until) < 1:
                    return
                began = self.budget.clock()
                self.fill(team, size, environment, mode)
                self.run_group(team, group, mode, repeat, began)

    def next_groups(self, mode, size, count):
        """[(group, repeat)]: new groups, and one of every REPEAT_EVERY again."""
        runs = {run["job"]: run for run in self.store.isolated() if not run["repeat"]}
        tried = [run for run in self.store.runs
                 if run["kind"] == "shared" and run["sharing_mode"] == mode and len(run["jobs"]) == size]
        done = [tuple(run["jobs"]) for run in tried if not run["repeat"]]
        again = sum(run["repeat"] for run in tried)
        fine = [tuple(run["jobs"]) for run in tried if run["outcome"] == "ok" and not run["repeat"]]
        found = []
        if len(fine) // design.REPEAT_EVERY > again and count > 1:
            found.append((fine[again * design.REPEAT_EVERY], 1))
        known = {tuple(sorted(one)) for one in done}
        if mode != "time-slice":  # what was measured time-sliced comes first: the same groups under both
            sliced = [tuple(run["jobs"]) for run in self.store.shared()
                      if run["sharing_mode"] == "time-slice" and len(run["jobs"]) == size and not run["repeat"]]
            found += [(one, 0) for one in dict.fromkeys(sliced) if tuple(sorted(one)) not in known][:count - len(found)]
        if len(found) < count:
            done += [one for one, repeat in found if not repeat]
            found += [(one, 0) for one in design.groups(list(runs.values()), size, self.card.total_mib(), done,
                                                        count - len(found))]
        return found

    def fill(self, team, size, environment, mode):
        """A living worker for each member; NotStarted when none can be woken as a client of MPS."""
        for worker in [one for one in team if not one.alive]:
            team.remove(worker)
            self.release(worker)
        while len(team) < size:
            team.append(self.new_worker(environment))
        try:
            for worker in team:
                worker.wake(self.sampler.check)
            self.environment = team[0].awake
        except crew.Failed as error:
            if mode == "mps":
                raise mps.NotStarted(f"its clients cannot use the GPU: {error}") from None
            raise GivenUp(f"no process can use the GPU: {error}") from None

    def run_group(self, team, group, mode, repeat, began):
        jobs = [self.job_named(name) for name in group]
        what = f"{mode} " + " + ".join(group)
        basis = {"sharing_mode": mode, "jobs": list(group), "repeat": repeat}
        try:
            results, seen = self.measure(team, jobs)
        except crew.Failed as error:
            took = self.budget.clock() - began
            self.record({**self.common("shared", error.outcome, took), **basis, "member": error.member,
                         "error": str(error), "at_line": error.at}, what)
            return
        took = self.budget.clock() - began
        self.budget.spent("shared", took)
        self.record({**self.common("shared", "ok", took), **basis, "members": [tidy(one) for one in results], **seen},
                    what)

    def job_named(self, name):
        run = next(run for run in self.store.isolated() if run["job"] == name)
        dims = tuple((axis, int(size)) for axis, size in (part.split("=") for part in run["dims"].split(";") if part))
        return zoo.Job(run["net"], run["family"], run["batch"], dims, run["precision"], run["optimizer"], run["mode"])

    # All of it.

    def run(self, kinds, modes):
        self.write_graphs()
        sizes = [SIZES[kind] for kind in kinds if kind in SIZES]
        if "isolated" in kinds:
            self.isolated(self.budget.moment(SHARE_ISOLATED) if sizes else None)
        if sizes:
            self.shared(sizes, modes, None)
        if "isolated" in kinds:  # time that groups left over
            self.isolated(None)


def hopeless(job, run):
    """Larger than a run of the same kind that did not fit."""
    return (job.net, job.dims_text, job.precision, job.optimizer, job.mode) == (
        run["net"], run["dims"], run["precision"], run["optimizer"], run["mode"]) and job.batch >= run["batch"]


def tidy(result):
    """A worker's answer without what only the profiler needed."""
    return {name: value for name, value in result.items() if name not in ("event", "opened", "closed")}


def copy(source, target, kept):
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        target.unlink(missing_ok=True)
        raise stores.cannot_write(target, error, kept) from None
