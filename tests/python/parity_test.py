# SPDX-License-Identifier: Apache-2.0
"""Decisions through Python are those of `horus place`, bit for bit, on random clusters and jobs.

Needs the command: HORUS_COMMAND, or a build of the repository; skipped without.
"""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest

from conftest import built

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

EXAMPLES = int(os.environ.get("HORUS_PARITY_EXAMPLES", "25"))  # the command starts once for each


def command():
    return built("HORUS_COMMAND", "bin/horus") or shutil.which("horus")


GPUS = st.sampled_from(["v100-pcie-16gb", "t4", "a100-40gb"])
PERCENT = st.integers(0, 100)
DEMAND = st.fixed_dictionaries({
    "util": st.tuples(PERCENT, PERCENT).map(sorted), "bandwidth": PERCENT, "mem_gib": st.integers(1, 20),
    "step_ms": st.integers(1, 500)})
NODE = st.fixed_dictionaries({
    "gpu": GPUS, "count": st.integers(1, 4), "cores": st.integers(2, 64), "gib": st.integers(8, 256),
    "sharing": st.sampled_from(["time-slice", "mps", "exclusive"]), "rack": st.integers(1, 2)})
JOB = st.fixed_dictionaries({
    "demand": DEMAND, "gpus": st.integers(1, 4), "tasks": st.integers(1, 2), "cores": st.integers(1, 16),
    "gib": st.integers(1, 64), "priority": st.integers(-2, 2), "kind": st.sampled_from(["training", "best-effort"]),
    "bound": st.sampled_from([0, 1.25, 2.0]), "exclusive": st.booleans()})
POLICY = st.sampled_from(["horus", "first-fit", "best-fit", "random", "exclusive", "horus-paper", "lucid", "fgd"])


def write_files(folder, nodes, jobs):
    cluster = {"version": 1, "nodes": [
        {"name": f"n{i}", "cpu_cores": n["cores"], "memory_gib": n["gib"], "rack": f"r{n['rack']}",
         "gpus": [{"type": n["gpu"], "count": n["count"], "sharing": n["sharing"]}]} for i, n in enumerate(nodes)]}
    listed = []
    for i, j in enumerate(jobs):
        demand = {"gpu_util_pct": j["demand"]["util"], "mem_bw_util_pct": j["demand"]["bandwidth"],
                  "gpu_memory_gib": j["demand"]["mem_gib"], "step_time_ms": j["demand"]["step_ms"]}
        job = {"name": f"j{i}", "demand": {"any": demand}, "gpus": j["gpus"], "tasks": j["tasks"], "cpu_cores": j["cores"],
               "memory_gib": j["gib"], "priority": j["priority"], "kind": j["kind"], "exclusive": j["exclusive"]}
        listed.append({**job, "slowdown_bound": j["bound"]} if j["bound"] else job)
    (folder / "cluster.yaml").write_text(json.dumps(cluster))  # JSON is YAML
    (folder / "jobs.yaml").write_text(json.dumps({"version": 1, "jobs": listed}))


def by_python(horus, nodes, jobs, policy, seed, order):
    racks = {name: i + 1 for i, name in enumerate(dict.fromkeys(n["rack"] for n in nodes))}
    cluster = horus.Cluster([
        horus.Node(id=i + 1, name=f"n{i}", cpu_milli=n["cores"] * 1000, mem_mib=n["gib"] * 1024, rack=racks[n["rack"]],
                   devices=[horus.Device(n["gpu"], sharing_mode=n["sharing"])] * n["count"]) for i, n in enumerate(nodes)])
    made = []
    for i, j in enumerate(jobs):
        demand = horus.Demand(
            gpu_util_pct=j["demand"]["util"][0], gpu_util_pct_upper=j["demand"]["util"][1],
            mem_bw_util_pct=j["demand"]["bandwidth"], mem_bw_util_pct_upper=j["demand"]["bandwidth"],
            mem_mib=j["demand"]["mem_gib"] * 1024, mem_mib_upper=j["demand"]["mem_gib"] * 1024,
            step_time_us=j["demand"]["step_ms"] * 1000, step_time_us_upper=j["demand"]["step_ms"] * 1000,
            flags=horus.DEMAND_GIVEN)
        made.append(horus.Job(
            id=order[i], name=f"j{i}", demands={"any": demand}, gpus_per_task=j["gpus"], tasks=j["tasks"],
            cpu_milli=j["cores"] * 1000, mem_mib=j["gib"] * 1024, priority=j["priority"], kind=j["kind"],
            slowdown_bound=j["bound"], exclusive=j["exclusive"], submit_us=i))
    return horus.Placer(policy, seed=seed).place(cluster, made)


def test_decisions_equal_those_of_the_command(horus, tmp_path_factory):
    horus_command = command()
    if horus_command is None:
        pytest.skip("the horus command is not built (HORUS_COMMAND names it)")

    @hypothesis.settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
    @hypothesis.given(st.lists(NODE, min_size=1, max_size=4), st.lists(JOB, min_size=1, max_size=8), POLICY,
                      st.integers(0, 9))
    def alike(nodes, jobs, policy, seed):
        folder = tmp_path_factory.mktemp("parity")
        write_files(folder, nodes, jobs)
        done = subprocess.run(
            [horus_command, "place", "--cluster", folder / "cluster.yaml", "--jobs", folder / "jobs.yaml", "--policy", policy,
             "--seed", str(seed), "--json"], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        told = json.loads(done.stdout)["decisions"]
        ids = {d["job"]: d["job_id"] for d in told}
        plan = by_python(horus, nodes, jobs, policy, seed, [ids[f"j{i}"] for i in range(len(jobs))])
        assert [d["job_id"] for d in told] == [d.job for d in plan]
        for theirs, ours in zip(told, plan):
            assert theirs["verdict"] == ours.verdict and ("" if theirs["reason"] == "none" else theirs["reason"]) == ours.reason
            assert [(s["node_id"], s["gpu"], s["task"]) for s in theirs["slots"]] == [
                (s.node, s.device, s.task) for s in ours.slots]
            if ours.verdict == "place":
                assert theirs["winner"]["cost"] == ours.cost and np.float32(theirs["slowdown"]) == np.float32(ours.slowdown)

    alike()
