# SPDX-License-Identifier: Apache-2.0
"""A policy in 20 lines, played against the built-in ones on a made-up morning."""

import numpy as np

import horus


def tightest(candidate):
    """Fill the device whose memory is left with least; rather not beside anybody who would lose half."""
    if candidate.slowdown_after.max() > 1.5:
        return None
    used = candidate.demands["mem_mib"].sum()
    return float(candidate.mem_mib - used)


def main():
    draw = np.random.default_rng(7)
    profiles = {"tune": (15, 2_000), "train": (70, 9_000), "serve": (25, 4_000)}
    beliefs = {name: horus.Demand(gpu_util_pct=util, mem_bw_util_pct=util / 2, mem_mib=mem, step_time_us=80_000, profile_id=i)
               for i, (name, (util, mem)) in enumerate(profiles.items(), 1)}
    jobs = 200
    trace = horus.Trace(profile=draw.choice(list(profiles), jobs).tolist(),
                        submit_us=np.sort(draw.integers(0, 6 * 3_600_000_000, jobs)),
                        duration_us=draw.integers(60_000_000, 3_600_000_000, jobs))
    cluster = horus.Cluster([horus.Node(id=i, cpu_milli=64_000, mem_mib=262_144, devices=[horus.Device("v100-pcie-16gb")] * 4)
                             for i in range(1, 4)])
    placers = {**{name: horus.Placer(name) for name in ("exclusive", "first-fit", "horus")}, "tightest": horus.Placer(tightest)}
    runs = horus.compare(trace, beliefs, horus.Truth.from_model(beliefs), cluster, placers)
    told = {name: result.metrics() for name, (result,) in runs.items()}
    for name, metrics in told.items():
        jct = metrics["jct_us"]["mean"]
        print(f"{name:10} mean completion {jct / 6e7:5.1f} min ({jct / told['exclusive']['jct_us']['mean'] - 1:+.0%}), wait "
              f"{metrics['wait_us']['mean'] / 6e7:5.1f} min, slowdown {metrics['slowdown']['mean']:.2f}")


if __name__ == "__main__":
    main()
