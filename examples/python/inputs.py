# SPDX-License-Identifier: Apache-2.0
"""Two jobs on one node, one hungry for cores and one for its GPU: their input pipelines are profiled on this machine, the node's cores are
given to the jobs by what is worth most to them, and both run. There are no GPUs here: a step on one is played by sleep."""

import argparse
import multiprocessing
import random
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import horus
from horus.profile import profile_inputs

IMAGE = zlib.compress(bytes(random.Random(1).choices(range(64), k=1_000_000)))


def decoding(workers):
    """Every batch costs the processor much."""
    with ThreadPoolExecutor(workers) as pool:
        waiting = [pool.submit(zlib.decompress, IMAGE) for _ in range(2 * workers)]
        while True:
            yield waiting.pop(0).result()
            waiting.append(pool.submit(zlib.decompress, IMAGE))


def reading(workers):
    """And here little."""
    while True:
        yield bytes(100_000)


def train(loader, workers, step_ms, seconds, told):
    """Steps a second of a training loop: the GPU works on one batch while the pipeline makes the next."""
    batches, gpu = iter(loader(workers)), ThreadPoolExecutor(1)
    step, steps, end = gpu.submit(time.sleep, 0), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        next(batches)
        step.result()
        step, steps = gpu.submit(time.sleep, step_ms / 1000), steps + 1
    told.put((loader.__name__, steps / seconds))


def play(cores, step_ms, seconds):
    """Both jobs at once, each with as many workers as it has cores."""
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    jobs = [context.Process(target=train, args=(loader, max(1, round(cores[loader.__name__])), step_ms[loader.__name__], seconds, told))
            for loader in (decoding, reading)]
    for job in jobs:
        job.start()
    found = dict(told.get() for _ in jobs)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4, help="of each profile, and of the jobs")
    parser.add_argument("--policy", default="horus")
    asked = parser.parse_args()
    profiles = {loader.__name__: profile_inputs(loader, budget_s=asked.seconds) for loader in (decoding, reading)}
    most = profiles["decoding"].counts[-1]
    step_ms = {"decoding": 1000 / profiles["decoding"].rate(0.85 * most).rate, "reading": 50.0}  # the first GPU waits for cores
    for name, profile in profiles.items():
        print(profile.report(step_ms[name]))
    fair, points = most / 2, [0.25 * quarter for quarter in range(1, 4 * most + 1)]
    jobs = [horus.Job(id=i, name=name, demands={"t4": horus.Demand(gpu_util_pct=90, mem_mib=8_000)},
                      sensitivity=profile.with_gpu_step(step_ms[name]).sensitivity(fair, 1, cores=points))
            for i, (name, profile) in enumerate(profiles.items(), 1)]
    node = horus.Node(id=1, cpu_milli=1000 * most, mem_mib=2048, devices=[horus.Device("t4")] * 2)
    cluster = horus.Cluster([node])
    cluster.apply(horus.Placer(asked.policy).place(cluster, jobs))  # who came first may have given cores back
    cores = {job.name: cluster.job(job.id)["cpu_milli"] / 1000 for job in jobs}
    before, after = (play(given, step_ms, asked.seconds) for given in (dict.fromkeys(cores, fair), cores))
    for name, given in cores.items():
        print(f"{name:9} {given:g} cores instead of {fair:g}: {after[name]:.1f} steps/s instead of {before[name]:.1f}")


if __name__ == "__main__":
    main()
