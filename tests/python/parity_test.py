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

from conftest import ROOT, built

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
    "sharing": st.sampled_from(["time-slice", "mps", "exclusive", "mig"]), "rack": st.integers(1, 2),
    "zone": st.sampled_from(["", "east"]), "tenants": st.integers(1, 4), "state": st.sampled_from(["up"] * 5 + ["drained"])})
INSTANCES = ["3g.20gb", "2g.10gb", "2g.10gb"]  # of an A100 with MIG
WAY = st.fixed_dictionaries({"demand": DEMAND, "gpus": st.integers(1, 2), "tasks": st.integers(1, 3),
                             "rate": st.integers(1, 9), "cores": st.integers(0, 4)})
JOB = st.fixed_dictionaries({
    "demand": DEMAND, "gpus": st.integers(1, 4), "tasks": st.integers(1, 2), "cores": st.integers(1, 16),
    "gib": st.integers(1, 64), "priority": st.integers(-2, 2),
    "kind": st.sampled_from(["training", "best-effort", "inference"]), "bound": st.sampled_from([0, 1.25, 2.0]),
    "exclusive": st.booleans(), "spread": st.booleans(), "zone": st.sampled_from(["", "", "east"]),
    "group": st.sampled_from(["", "g"]), "avoid": st.sampled_from(["", "", "g"]),
    "ways": st.one_of(st.just([]), st.just([]), st.lists(WAY, min_size=1, max_size=3))})
NEEDS_THE_SOLVER = {"synergy-opt"}  # libhorus_lp.so, which the package does not carry


def demand_entry(demand):
    return {"gpu_util_pct": demand["util"], "mem_bw_util_pct": demand["bandwidth"], "gpu_memory_gib": demand["mem_gib"],
            "step_time_ms": demand["step_ms"]}


def node_entry(number, n):
    gpus = {"type": n["gpu"], "count": n["count"], "sharing": n["sharing"], "max_tenants": n["tenants"]}
    if n["sharing"] == "mig":
        gpus = {"type": "a100-40gb", "count": n["count"], "mig": INSTANCES, "max_tenants": n["tenants"]}
    return {"name": f"n{number}", "cpu_cores": n["cores"], "memory_gib": n["gib"], "rack": f"r{n['rack']}", "state": n["state"],
            "gpus": [gpus], **({"labels": {"zone": n["zone"]}} if n["zone"] else {})}


def job_entry(number, j):
    job = {"name": f"j{number}", "cpu_cores": j["cores"], "memory_gib": j["gib"], "priority": j["priority"], "kind": j["kind"],
           "exclusive": j["exclusive"], "spread_tasks": j["spread"]}
    if j["ways"]:
        job["alternatives"] = [{"tasks": way["tasks"], "gpus": way["gpus"], "rate": way["rate"],
                                "demand": {"any": demand_entry(way["demand"])},
                                **({"cpu_cores": way["cores"]} if way["cores"] else {})} for way in j["ways"]]
    else:
        job.update(demand={"any": demand_entry(j["demand"])}, gpus=j["gpus"], tasks=j["tasks"])
    optional = {"slowdown_bound": j["bound"], "node_selector": {"zone": j["zone"]} if j["zone"] else None,
                "groups": [j["group"]] if j["group"] else None, "avoid_groups": [j["avoid"]] if j["avoid"] else None}
    return {**job, **{name: value for name, value in optional.items() if value}}


def write_files(folder, nodes, jobs):
    (folder / "cluster.yaml").write_text(json.dumps(  # JSON is YAML
        {"version": 1, "nodes": [node_entry(i, n) for i, n in enumerate(nodes)]}))
    (folder / "jobs.yaml").write_text(json.dumps({"version": 1, "jobs": [job_entry(i, j) for i, j in enumerate(jobs)]}))


def demand_of(horus, demand):
    return horus.Demand(
        gpu_util_pct=demand["util"][0], gpu_util_pct_upper=demand["util"][1], mem_bw_util_pct=demand["bandwidth"],
        mem_bw_util_pct_upper=demand["bandwidth"], mem_mib=demand["mem_gib"] * 1024, mem_mib_upper=demand["mem_gib"] * 1024,
        step_time_us=demand["step_ms"] * 1000, step_time_us_upper=demand["step_ms"] * 1000, flags=horus.DemandFlag.GIVEN)


def devices_of(horus, n):
    if n["sharing"] != "mig":
        return [horus.Device(n["gpu"], sharing_mode=n["sharing"], max_tenants=n["tenants"], physical_gpu=card)
                for card in range(n["count"])]
    return [horus.Device("a100-40gb", sharing_mode="mig", mig_profile=instance, physical_gpu=card, max_tenants=n["tenants"])
            for card in range(n["count"]) for instance in INSTANCES]


def built_by_hand(horus, nodes, jobs):
    racks = {name: i + 1 for i, name in enumerate(dict.fromkeys(n["rack"] for n in nodes))}
    cluster = horus.Cluster([
        horus.Node(id=i + 1, name=f"n{i}", cpu_milli=n["cores"] * 1000, mem_mib=n["gib"] * 1024, rack=racks[n["rack"]],
                   devices=devices_of(horus, n), labels={"zone": n["zone"]} if n["zone"] else {}) for i, n in enumerate(nodes)])
    for i, n in enumerate(nodes):
        cluster.set_node_state(i + 1, n["state"])
    made = []
    for i, j in enumerate(jobs):
        how = dict(alternatives=[horus.Alternative(
            tasks=way["tasks"], gpus_per_task=way["gpus"], rate=way["rate"], cpu_milli=way["cores"] * 1000,
            demands={"any": demand_of(horus, way["demand"])}) for way in j["ways"]]) if j["ways"] else dict(
                demands={"any": demand_of(horus, j["demand"])}, gpus_per_task=j["gpus"], tasks=j["tasks"])
        made.append(horus.Job(
            id=i + 1, name=f"j{i}", cpu_milli=j["cores"] * 1000, mem_mib=j["gib"] * 1024, priority=j["priority"], kind=j["kind"],
            slowdown_bound=j["bound"], exclusive=j["exclusive"], spread_tasks=j["spread"],
            selectors={"zone": j["zone"]} if j["zone"] else {}, groups=[j["group"]] if j["group"] else [],
            avoid_groups=[j["avoid"]] if j["avoid"] else [], **how))
    return cluster, made


def told_by_the_command(horus_command, folder, policy, seed, *options):
    done = subprocess.run(
        [horus_command, "place", "--cluster", folder / "cluster.yaml", "--jobs", folder / "jobs.yaml", "--policy", policy,
         "--seed", str(seed), "--json", *options], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)["decisions"]


def check_alike(told, plan):
    assert [d["job_id"] for d in told] == [d.job for d in plan]
    for theirs, ours in zip(told, plan):
        assert theirs["verdict"] == ours.verdict and ("" if theirs["reason"] == "none" else theirs["reason"]) == ours.reason
        assert [(s["node_id"], s["gpu"], s["task"]) for s in theirs["slots"]] == [
            (s.node, s.device, s.task) for s in ours.slots]
        if ours.verdict == "place":
            assert theirs["winner"]["cost"] == ours.cost and np.float32(theirs["slowdown"]) == np.float32(ours.slowdown)


def tried(horus):
    return [policy for policy in horus.policies() if policy not in NEEDS_THE_SOLVER]


def chosen(placer, cluster, jobs):
    """As the command does: kSmallBatch jobs are compared, and one call has no future."""
    return placer.place_batch(cluster, jobs, window=64, prices=False)


def test_what_is_read_is_what_is_built(horus, tmp_path_factory):
    @hypothesis.settings(max_examples=4 * EXAMPLES, deadline=None, derandomize=True, database=None)
    @hypothesis.given(st.lists(NODE, min_size=1, max_size=4), st.lists(JOB, min_size=1, max_size=6))
    def alike(nodes, jobs):
        folder = tmp_path_factory.mktemp("read")
        write_files(folder, nodes, jobs)
        cluster, made = built_by_hand(horus, nodes, jobs)
        read = horus.Cluster.from_yaml(folder / "cluster.yaml")
        assert read.info()["state_hash"] == cluster.info()["state_hash"]
        assert horus.read_jobs(folder / "jobs.yaml", cluster) == made

    alike()


def test_decisions_equal_those_of_the_command(horus, tmp_path_factory):
    horus_command = command()
    if horus_command is None:
        pytest.skip("the horus command is not built (HORUS_COMMAND names it)")

    @hypothesis.settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
    @hypothesis.given(st.lists(NODE, min_size=1, max_size=4), st.lists(JOB, min_size=1, max_size=8),
                      st.sampled_from(tried(horus)), st.integers(0, 9))
    def alike(nodes, jobs, policy, seed):
        folder = tmp_path_factory.mktemp("parity")
        write_files(folder, nodes, jobs)
        cluster, made = built_by_hand(horus, nodes, jobs)
        placer = horus.Placer(policy, seed=seed)
        check_alike(told_by_the_command(horus_command, folder, policy, seed, "--one-by-one"), placer.place(cluster, made))
        if policy == "horus":
            check_alike(told_by_the_command(horus_command, folder, policy, seed), chosen(placer, cluster, made))

    alike()


def test_every_policy_decides_as_the_command_does(horus, tmp_path):
    horus_command = command()
    if horus_command is None:
        pytest.skip("the horus command is not built (HORUS_COMMAND names it)")
    cluster = horus.Cluster.from_yaml(ROOT / "examples/cluster.yaml")
    jobs = horus.read_jobs(ROOT / "examples/jobs.yaml", cluster)
    for name in ("cluster", "jobs"):
        (tmp_path / f"{name}.yaml").write_text((ROOT / f"examples/{name}.yaml").read_text().replace(
            "models/", f"{ROOT}/examples/models/"))
    for policy in tried(horus):
        check_alike(told_by_the_command(horus_command, tmp_path, policy, 3, "--one-by-one"),
                    horus.Placer(policy, seed=3).place(cluster, jobs))
    check_alike(told_by_the_command(horus_command, tmp_path, "horus", 3), chosen(horus.Placer("horus", seed=3), cluster, jobs))
