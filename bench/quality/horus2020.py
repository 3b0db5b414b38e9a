# SPDX-License-Identifier: Apache-2.0
"""The preset horus2020 as workload, in its own models or in those that were measured, and how busy it keeps GPUs.

How busy a GPU is, is what the papers count as utilisation: of its tenants' utilisation alone the sum, at most 100 %. It
comes from the timeline of a run; demands are predicted (`horus inspect`), for no table says how busy these jobs keep a GPU.
"""
import concurrent.futures
import csv
import dataclasses
import json
import os
import pathlib
import re
import subprocess

import datasets

JOBS = 2500  # of the preset
BATCHES = (16, 32, 64, 128, 256)
# The preset's models (src/lab/trace/synthetic.cc) -> the measured kind that stands for it. Three are the same net;
# of the others a kind of about its shape and size: chosen, not measured.
SAME = {"resnet50": "ResNet-50", "lstm_wikitext2": "LM", "transformer_multi30k": "Transformer"}
STAND_INS = {"alexnet": "ResNet-18", "mobilenet_v2": "ResNet-18", "squeezenet1_1": "ResNet-18", "shufflenet_v2_x1_0": "ResNet-18",
             "vgg16": "ResNet-50", "googlenet": "ResNet-50", "inception_v3": "ResNet-50", "densenet121": "ResNet-50",
             "gru_seq2seq": "LM", "bert_small": "Transformer"}
NETS = tuple(STAND_INS) + tuple(SAME)
FULL_PCT = 100
# Events of a timeline after which a job holds the places of the row, and those after which it waits again.
HOLDS, WAITS = {"start", "migrate"}, {"arrive", "fail", "preempt", "out-of-memory", "interrupt", "profiled"}


def zoo_dims():
    """Of each net of the zoo the sizes of its named dimensions but the batch, as its inputs state them: "seq=128"."""
    with (datasets.MODELS / "zoo.csv").open(newline="", encoding="utf-8") as file:
        return {row["net"]: ";".join(dict.fromkeys(dim for dim in re.findall(r"\w+=\d+", row["inputs"])
                                                   if not dim.startswith("batch=")))
                for row in csv.DictReader(file)}


def job_table(path):
    """A table of jobs (docs/measure.md): each model of the preset at each batch, under the preset's names."""
    dims = zoo_dims()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ("job", "graph", "family", "batch", "dims", "optimizer"), lineterminator="\n")
        writer.writeheader()
        for net in NETS:
            graph = os.path.relpath(datasets.MODELS / "graphs" / f"{net}.onnx", path.parent.resolve())
            for batch in BATCHES:
                writer.writerow({"job": f"{net} (batch size {batch})", "graph": graph, "family": net, "batch": batch,
                                 "dims": dims[net], "optimizer": "momentum"})
    return path


def stand_in(profile, measured):
    """The measured job that stands for a profile of the preset: its kind at the nearest batch, the smaller of two."""
    net, batch = datasets.job_of(profile)
    kind = SAME.get(net) or STAND_INS[net]
    batches = sorted(int(datasets.job_of(name)[1]) for name in measured if datasets.job_of(name)[0] == kind)
    if not batches:
        return None
    best = min(batches, key=lambda other: max(other / int(batch), int(batch) / other))
    return f"{kind} (batch size {best})"


def inspect(horus, row, folder, gpu, bundle):
    command = [horus, "inspect", str(folder / row["graph"]), "--gpu", gpu, "--json", "--batch", row["batch"], *bundle]
    for option in ("optimizer", "framework", "precision", "mode"):
        command += [f"--{option}", row[option]] if row.get(option) else []
    for dim in filter(None, (row.get("dims") or "").split(";")):
        command += ["--dim", dim]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["gpus"][0]
    return min(FULL_PCT, told["gpu_util_pct"]) if told["fits"] else None


def utilisation(horus, jobs, gpu, bundle):
    """Of each job of a table how busy it alone keeps that GPU, in per cent; jobs that do not fit are left out."""
    with jobs.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        told = list(pool.map(lambda row: inspect(horus, row, jobs.parent, gpu, bundle), rows))
    return {row["job"]: busy for row, busy in zip(rows, told) if busy is not None}


@dataclasses.dataclass
class Workload:
    """A trace of the preset, by name of the file."""
    path: pathlib.Path
    profile: dict  # id -> profile
    left_out: int  # jobs that no profile stands for, or that do not fit


def draw(horus, path, seed, jobs, rename, arrivals):
    """The preset's trace of a seed with each profile renamed; `rename` says None of what is to be left out."""
    subprocess.run([horus, "traces", "make", "horus2020", "--seed", str(seed), "--jobs", str(jobs), "--to", str(path),
                    *arrivals], check=True, stdout=subprocess.DEVNULL)
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        fields, rows = reader.fieldnames, list(reader)
    kept = [dict(row, profile=rename(row["profile"])) for row in rows]
    kept = [row for row in kept if row["profile"]]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
    return Workload(path, {row["id"]: row["profile"] for row in kept}, len(rows) - len(kept))


class Busy:
    """Sums over the timeline of a run: how busy the GPUs were, in all and while jobs waited."""

    def __init__(self, demand, gpus):
        self.demand, self.gpus = demand, gpus  # id -> per cent; GPUs of the cluster
        self.at, self.tenants, self.waiting = {}, {}, set()
        self.now = self.first = None
        self.busy_now = self.busy = self.busy_queue = self.queue_us = 0.0

    def advance(self, time_us):
        if self.now is None:
            self.now = self.first = time_us
        span, self.now = time_us - self.now, time_us
        self.busy += span * self.busy_now
        if self.waiting:
            self.busy_queue += span * self.busy_now
            self.queue_us += span

    def leave(self, job):
        for place in self.at.pop(job, ()):
            self.change(place, -self.demand[job])

    def come(self, job, place):
        self.at.setdefault(job, []).append(place)
        self.change(place, self.demand[job])

    def change(self, place, demand):
        before = self.tenants.get(place, 0.0)
        self.tenants[place] = before + demand
        self.busy_now += min(FULL_PCT, before + demand) - min(FULL_PCT, before)

    def add(self, row):
        self.advance(int(row["time_us"]))
        job, event = row["job"], row["event"]
        if not job:
            return
        self.leave(job)
        if event in HOLDS:
            for gpu in row["gpus"].split():
                self.come(job, (row["node"], gpu))
        (self.waiting.add if event in WAITS else self.waiting.discard)(job)

    def shares(self):
        """Per cent of all GPUs from first submission to last event, and while jobs waited."""
        whole, queue = (self.now - self.first) * self.gpus, self.queue_us * self.gpus
        return self.busy / whole if whole else None, self.busy_queue / queue if queue else None


def busy_of(timeline, workload, utilisations, gpus):
    busy = Busy({job: utilisations[profile] for job, profile in workload.profile.items()}, gpus)
    with timeline.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            busy.add(row)
    return busy.shares()
