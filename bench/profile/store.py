# SPDX-License-Identifier: Apache-2.0
"""Where results lie: a journal that each run is appended to at once, and the tables made from it.

runs.jsonl is the truth: one line a run, whatever its outcome, written through to the disk. dataset.csv, pairs.csv,
jobs.csv (docs/measure.md) and groups.csv (three jobs and more) are made anew from it and replaced whole.
"""
import csv
import errno
import fcntl
import io
import json
import math
import os
import pathlib
import statistics

MIN_SLOWDOWN = 0.5  # docs/measure.md: noise does not double a speed
DATASET = ("graph", "net", "family", "batch", "dims", "mode", "precision", "optimizer", "framework", "gpu",
           "sharing_mode", "gpu_util_pct", "gpu_util_max_pct", "mem_bw_util_pct", "mem_mib", "step_time_us", "power_w",
           "campaign", "note")
JOBS = ("job", "graph", "family", "batch", "dims", "mode", "precision", "optimizer", "framework", "note")
PAIRS = ("gpu", "sharing_mode", "job_a", "job_b", "slowdown_a", "slowdown_b", "campaign", "note")
GROUPS = ("gpu", "sharing_mode", "jobs", "slowdowns", "gpu_util_pct", "mem_bw_util_pct", "device_used_mib", "power_w",
          "campaign", "note")


class NotWritten(RuntimeError):
    """A result could not be put on the disk."""


class NotTheirs(RuntimeError):
    """The folder belongs to another GPU, or to a profiler that runs."""


def cannot_write(path, error, kept):
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return NotWritten(f"{path}: {'the disk is full' if full else os.strerror(error.errno or errno.EIO)}; "
                      f"{kept} finished runs are kept; make room and run the same command again")


class Store:
    """The folder of one campaign. Graphs of the zoo are copied into it unless they lie elsewhere, at `graphs_at`."""

    def __init__(self, folder, campaign, graphs_at="graphs"):
        self.folder, self.campaign, self.graphs_at = pathlib.Path(folder), campaign, graphs_at
        self.journal = self.folder / "runs.jsonl"
        self.runs = []
        self.make_folder(self.folder)
        self.runs = self.read()

    def claim(self, gpu):
        """Makes it this process's, for runs of one GPU: times of two cannot be divided by each other."""
        others = sorted({run["gpu"] for run in self.runs} - {gpu})
        if others:
            raise NotTheirs(f"{self.folder}: expected runs of {gpu}, found runs of {', '.join(others)}; give another --out")
        try:
            self.lock = os.open(self.folder, os.O_RDONLY)
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NotTheirs(f"{self.folder}: another profiler writes to it") from None
        except OSError:
            pass  # a file system without locks

    def make_folder(self, path):
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(path, error, len(self.runs)) from None

    def read(self):
        """The finished runs; a last line cut short by the end of the profiler is dropped from the file."""
        runs, good = [], 0
        if self.journal.exists():
            data = self.journal.read_bytes()
            for number, line in enumerate(data.splitlines(keepends=True), 1):
                try:
                    if not line.endswith(b"\n"):
                        raise ValueError("cut short")
                    runs.append(json.loads(line))
                except ValueError:
                    if good + len(line) < len(data):
                        raise NotWritten(f"{self.journal}: line {number} is no JSON: expected one run a line as the "
                                         "profiler writes it") from None
                    os.truncate(self.journal, good)
                    break
                good += len(line)
        return runs

    def add(self, run):
        """Appends a run and syncs it; on failure the journal is as it was."""
        data = (json.dumps(run) + "\n").encode()
        size = self.journal.stat().st_size if self.journal.exists() else 0
        try:
            with open(self.journal, "ab", buffering=0) as file:
                while data:
                    data = data[file.write(data):]
                os.fsync(file.fileno())
        except OSError as error:
            if self.journal.exists():
                os.truncate(self.journal, size)
            raise cannot_write(self.journal, error, len(self.runs)) from None
        self.runs.append(run)
        self.write_tables()

    def graph_and_batch(self, run):
        """The batch is blank where the graph has no batch axis; graphs of a user's nets lie beside the tables."""
        folder = "graphs" if ":" in run["net"] else self.graphs_at
        return {"graph": f"{folder}/{run['net_name']}.onnx", "batch": run["batch"] or ""}

    def isolated(self):
        return [run for run in self.runs if run["kind"] == "isolated" and run["outcome"] == "ok"]

    def shared(self):
        return [run for run in self.runs if run["kind"] == "shared" and run["outcome"] == "ok"]

    def alone_us(self):
        """Job -> mean step time alone, over its repeats."""
        times = {}
        for run in self.isolated():
            times.setdefault(run["job"], []).append(run["step_mean_us"])
        return {job: statistics.fmean(found) for job, found in times.items()}

    def write_tables(self):
        alone = self.alone_us()
        self.write("dataset.csv", DATASET, map(self.dataset_row, self.isolated()))
        groups = average(self.shared(), alone)
        pairs = [one for one in groups if len(one["jobs"]) == 2]
        self.write("pairs.csv", PAIRS, map(self.pair_row, pairs))
        self.write("groups.csv", GROUPS, (self.group_row(one) for one in groups if len(one["jobs"]) > 2))
        named = {job for one in groups for job in one["jobs"]}
        known = {run["job"]: run for run in self.isolated()}
        self.write("jobs.csv", JOBS, ({**known[job], **self.graph_and_batch(known[job]), "note": ""}
                                      for job in sorted(named)))

    def write(self, name, columns, rows):
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        self.replace(name, text.getvalue())

    def replace(self, name, text):
        """Writes a file beside the old one and swaps them."""
        path = self.folder / name
        partial = path.with_name(name + ".part")
        try:
            partial.write_text(text, encoding="utf-8")
            os.replace(partial, path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise cannot_write(path, error, len(self.runs)) from None

    def dataset_row(self, run):
        note = [f"p95 {run['step_p95_us']:.0f} us", f"{run['steps']} steps",
                f"{run['samples_distinct']} distinct samples of {run['samples']}"]
        if run["repeat"]:
            note.append(f"repeat {run['repeat']}")
        return {**run, "net": run["net_name"], **self.graph_and_batch(run), "sharing_mode": "exclusive",
                "campaign": self.campaign, "note": "; ".join(note), "step_time_us": figure(run["step_mean_us"]),
                **{name: figure(run.get(name)) for name in ("gpu_util_pct", "gpu_util_max_pct", "mem_bw_util_pct")},
                **{name: figure(run.get(name) or None) for name in ("mem_mib", "power_w")}}  # 0 is not measured

    def pair_row(self, one):
        (a, b), (slow_a, slow_b) = one["jobs"], one["slowdowns"]
        return {"gpu": one["gpu"], "sharing_mode": one["sharing_mode"], "job_a": a, "job_b": b,
                "slowdown_a": figure(slow_a), "slowdown_b": figure(slow_b), "campaign": self.campaign,
                "note": f"mean of {one['repeats']}" if one["repeats"] > 1 else ""}

    def group_row(self, one):
        return {**one, "jobs": "+".join(one["jobs"]), "slowdowns": ";".join(map(figure, one["slowdowns"])),
                "campaign": self.campaign, "note": f"mean of {one['repeats']}" if one["repeats"] > 1 else "",
                **{name: figure(one[name]) for name in GROUPS[4:8]}}

    def dropped(self):
        """How many groups are no rows, because a job is said to be twice as fast beside others."""
        alone = self.alone_us()
        return len(average(self.shared(), alone, 0.0)) - len(average(self.shared(), alone))

    def noise(self):
        """How far repeats of the same run lie apart: the mean relative spread, with the number of repeated runs."""
        alone, shared = {}, {}
        for run in self.isolated():
            alone.setdefault(run["job"], []).append(run["step_mean_us"])
        means = {job: statistics.fmean(found) for job, found in alone.items()}
        for run in self.shared():
            if all(job in means for job in run["jobs"]):
                for place, result in enumerate(run["members"]):
                    key = run["sharing_mode"], tuple(run["jobs"]), place
                    shared.setdefault(key, []).append(result["step_mean_us"])
        return {"isolated_step_time": spread(alone.values()), "shared_step_time": spread(shared.values())}


def figure(value):
    """Six significant digits; blank when it was not measured."""
    return "" if value is None or not math.isfinite(value) else f"{value:.6g}"


def spread(groups):
    relative = [statistics.stdev(one) / statistics.fmean(one) for one in groups if len(one) > 1]
    return {"repeated": len(relative),
            "relative_standard_deviation": round(statistics.fmean(relative), 5) if relative else None}


def average(runs, alone, least=MIN_SLOWDOWN):
    """Shared runs of the same jobs in the same mode as one, with slowdowns against each job's own time alone.

    Two copies of a job are one thing measured twice: both get the mean. A job that is faster than `least` allows says that
    it was slowed when it ran alone; its groups are no rows.
    """
    groups = {}
    for run in runs:
        if all(job in alone for job in run["jobs"]):
            order = sorted(range(len(run["jobs"])), key=lambda place: run["jobs"][place])
            key = run["gpu"], run["sharing_mode"], tuple(run["jobs"][place] for place in order)
            groups.setdefault(key, []).append((run, order))
    found = []
    for (gpu, mode, jobs), members in groups.items():
        slow = [statistics.fmean(run["members"][order[place]]["step_mean_us"] for run, order in members) / alone[job]
                for place, job in enumerate(jobs)]
        slow = [statistics.fmean(s for other, s in zip(jobs, slow) if other == job) for job in jobs]
        if min(slow) >= least:
            means = {name: mean_of([run.get(name) for run, _ in members]) for name in GROUPS[4:8]}
            found.append({"gpu": gpu, "sharing_mode": mode, "jobs": jobs, "slowdowns": slow, "repeats": len(members),
                          **means})
    return found


def mean_of(values):
    known = [one for one in values if one is not None]
    return statistics.fmean(known) if known else None
