# SPDX-License-Identifier: Apache-2.0
"""Policies against each other on a trace over several seeds, with 95 % intervals."""

import argparse
import os

import numpy as np

import horus

GPU = "v100-pcie-16gb"
NETS = {  # what jobs run: utilisation, bandwidth (per cent) and memory (MiB) of one GPU, as small, middling and large nets
    "recommender": (22, 15, 3_000), "translation": (58, 40, 7_000), "vision": (88, 65, 9_500), "language": (96, 80, 13_000)}
GPUS = 16


def play(source, jobs, seed):
    """A trace whose jobs run NETS, at a load of 1.2."""
    if os.path.exists(source):
        trace = horus.Trace.from_file(source).take(slice(jobs))
    else:
        trace = horus.Trace.synthetic(source, seed=seed, jobs=jobs, arrivals="poisson", capacity_gpu_milli=GPUS * 1000,
                                      load_milli=1200)
    whole = trace.columns()["gpus_per_task"] * trace.columns()["tasks"] <= GPUS
    trace = trace.take(whole & ~trace.columns()["endless"])
    return trace.replace(profile=np.random.default_rng(seed).choice(list(NETS), len(trace)), gpu_types=None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", nargs="?", default="philly", help="a preset (philly, horus2020), drawn anew by each seed; or a "
                        "published file (docs/simulate.md), whose jobs run other nets with each seed")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--plot", metavar="FILE.png")
    asked = parser.parse_args()

    demands = {net: horus.Demand(gpu_util_pct=util, mem_bw_util_pct=bandwidth, mem_mib=mem, step_time_us=100_000,
                                 profile_id=i)
               for i, (net, (util, bandwidth, mem)) in enumerate(NETS.items(), 1)}
    cluster = horus.Cluster([horus.Node(id=i, cpu_milli=64_000, mem_mib=524_288, devices=[horus.Device(GPU)] * 4)
                             for i in range(GPUS // 4)])
    placers = {policy: horus.Placer(policy) for policy in ("exclusive", "first-fit", "lucid", "horus")}
    truth = horus.Truth.from_model(demands)  # the model is right; another model here tells what errors cost
    traces = [play(asked.trace, asked.jobs, seed) for seed in range(1, asked.seeds + 1)]
    comparison = horus.compare(traces, demands, truth, cluster, placers, progress=True)
    print(traces[0], "x", len(traces))
    print(comparison)

    if asked.plot:
        from horus import plot

        plot.policies(comparison).figure.savefig(asked.plot, bbox_inches="tight")
        print("written to", asked.plot)


if __name__ == "__main__":
    main()
