# SPDX-License-Identifier: Apache-2.0
"""Memory stays flat, whatever is called how often, whether it succeeds or fails."""

import ctypes
import enum
import gc
import inspect
import os
import random

import numpy as np
import pytest

from conftest import GRAPHS
from fit_test import pairs

FLAT_CALLS = int(os.environ.get("HORUS_FLAT_CALLS", "10000"))  # of all functions; a million is run by hand
FLAT_BYTES = 1 << 20
SLOW = 200  # a call of these stands for as many of the others: milliseconds each
LEFT_OUT = {  # and why
    "Graph.from_torch": "needs torch, whose memory is not flat", "Predictor.fit": "needs XGBoost, whose memory is not ours",
    "Predictor.default": "the same as Predictor()", "Plan.count": "of collections.abc", "Plan.index": "of collections.abc",
    "potential": "needs libhorus_lp.so", "Trace.from_file": "reads a file each time",
    "Quantile.count": "of tuple", "Quantile.index": "of tuple",
    "Slowdown.count": "of tuple", "Slowdown.index": "of tuple", "Metric.count": "of tuple", "Metric.index": "of tuple"}
FRAMES = "needs pandas, which keeps what it likes"


def right_calls(horus, make, resnet, predictor):
    """{function: a call of it with right arguments}, and the names of the slow ones."""
    draw, device = random.Random(0), "v100-pcie-16gb"
    cluster, placer, model = make.cluster(), horus.Placer(), horus.InterferenceModel()
    job, resident = make.job(), make.job(900, util=20, mem=500)
    cluster.adopt(resident, [horus.Slot(2, 1, 0)])
    demands = [make.demand(profile_id=1), make.demand(80, profile_id=2)]
    observed = make.cluster()
    observed.adopt(make.job(5, demands={device: demands[0]}), [horus.Slot(1, 0)])
    rows = horus.demand_rows(demands)
    data, seen = pairs(horus, 6), horus.Observations()
    seen.add_demand(1, "t4", mem_mib=5_000)
    seen.add_slowdown(device, demands[0], demands[1:], 1.5)
    learned = horus.InterferenceModel.fit(model="iasp", **data)
    bundle, learned_bundle, onnx = predictor.to_bytes(), learned.to_bytes(), (GRAPHS / "resnet18.onnx").read_bytes()
    trace = horus.Trace(profile=["a", "b", "a"], duration_us=[1_000_000] * 3)
    beliefs = {"a": demands[0], "b": demands[1]}
    truth = horus.Truth.from_model(beliefs)
    result, plan = horus.simulate(trace, beliefs, truth, cluster_without(horus, make), placer), placer.place(cluster, job)
    catalogue, gpu = horus.gpus(), horus.gpus()[device].replace(name="mine")
    spare = horus.Node(id=77, cpu_milli=1_000)

    learns = horus.SimOptions(learns="pairs", observe_us=1_000)
    played = horus.simulate(trace, beliefs, truth, cluster_without(horus, make), placer, learns)
    compared = horus.compare(trace, beliefs, truth, cluster_without(horus, make), {"horus": placer})
    text, queue = "version: 1\nnodes: [{name: n, cpu_cores: 1, memory_gib: 1, gpus: [{type: t4}]}]\n", horus.Queue("srtf")
    jobs = "version: 1\njobs: [{demand: {any: {gpu_util_pct: 5, gpu_memory_gib: 1}}}]\n"
    metrics = horus.Metrics(lambda level, line: None, level="debug")
    half = {"a": horus.Sensitivity(cpu_milli=[1_000], mem_mib=[1_024], speeds=[1.0])}

    def queued():
        for number in (1, 2, 3):
            queue.push(horus.QueuedJob(id=number, total_us=number))
        queue.update(2, remaining_us=1)
        queue.remove(1)
        queue.serve(2, 5)
        return queue.window(5, 3), queue.job(3), queue.pop(5)

    def metered():
        for handle in (cluster, placer, predictor):
            handle.set_metrics(metrics)
            handle.set_metrics(None)

    def applied():
        cluster.apply(placer.place(cluster, job))
        cluster.release(job.id)

    def adopted():
        cluster.adopt(job, [horus.Slot(1, 0, 0)])
        cluster.release(job.id)

    def changed():
        cluster.add_node(spare)
        cluster.change_node(spare.replace(cpu_milli=2_000))
        cluster.remove_node(77)

    def supposed():
        with cluster.what_if() as copy:
            copy.release(900)

    def noted():
        own = horus.Observations()
        own.add_demand(1, "t4", mem_mib=draw.randrange(100, 5_000))
        own.add_slowdown(device, demands[0], demands[1:], 1.2)
        own.add_resident(observed, 5, mem_mib=draw.randrange(100, 5_000))
        return own

    calls = {
        "Catalogue.extend": lambda: catalogue.extend([gpu]), "Catalogue.find": lambda: catalogue.find("t4"),
        "Cluster.add_node": changed, "Cluster.change_node": changed, "Cluster.remove_node": changed, "Cluster.adopt": adopted,
        "Cluster.apply": applied, "Cluster.release": adopted, "Cluster.device": lambda: cluster.device(1, 0),
        "Cluster.info": cluster.info, "Cluster.job": lambda: cluster.job(900), "Cluster.node": lambda: cluster.node(2),
        "Cluster.restore": lambda: horus.Cluster.restore(cluster.snapshot()), "Cluster.slots": lambda: cluster.slots(900),
        "Cluster.specs": cluster.specs,
        "Cluster.set_device_state": lambda: [cluster.set_device_state(1, 1, s) for s in ("down", "up")],
        "Cluster.set_node_state": lambda: [cluster.set_node_state(1, s) for s in ("drained", "up")],
        "Cluster.snapshot": cluster.snapshot, "Cluster.what_if": supposed,
        "Cluster.from_yaml": lambda: horus.Cluster.from_yaml(text), "Comparison.items": lambda: [compared.items(), compared.summary],
        "FeatureRow.to_dict": resnet.features().to_dict,
        "Graph.cost": resnet.cost, "Graph.features": resnet.features, "Graph.from_onnx": lambda: horus.Graph.from_onnx(onnx),
        "Graph.from_config": lambda: horus.Graph.from_config("gpt2"),
        "InterferenceModel.changes": learned.changes, "InterferenceModel.to_bytes": learned.to_bytes,
        "InterferenceModel.fit": lambda: horus.InterferenceModel.fit(model="iasp", **data),
        "InterferenceModel.from_callable": lambda: horus.InterferenceModel.from_callable(lambda d, t: np.ones(len(t))).slowdown(
            device, rows),
        "InterferenceModel.from_table": lambda: horus.InterferenceModel.from_table([device], [1], [2], [1.5], [1.4]),
        "InterferenceModel.measured": lambda: model.measured(device, demands),
        "InterferenceModel.quantile": lambda: model.quantile(0.95, device, demands),
        "InterferenceModel.load": lambda: horus.InterferenceModel.load(learned_bundle, "iasp"),
        "InterferenceModel.matrix": lambda: model.matrix(device, demands),
        "InterferenceModel.observe": lambda: model.observe(seen), "InterferenceModel.slowdown": lambda: model.slowdown(device, rows),
        "Observations.add_demand": noted, "Observations.add_slowdown": noted, "Observations.add_resident": noted, "Observations.calibration": seen.calibration,
        "Observations.devices": seen.devices, "Observations.to_bytes": seen.to_bytes,
        "Observations.restore": lambda: horus.Observations.restore(seen.to_bytes()),
        "Placer.explain": lambda: placer.explain(cluster, job), "Placer.place": lambda: placer.place(cluster, job),
        "Placer.place_batch": lambda: placer.place_batch(cluster, [job, make.job(2)]),
        "Placer.preempt": lambda: placer.preempt(cluster, job.replace(priority=1)), "Placer.rebalance": lambda: placer.rebalance(cluster),
        "Placer.appraise": lambda: placer.appraise(cluster, job, [horus.Slot(1, 0)]),
        "Placer.evacuate": lambda: placer.evacuate(cluster, [1]), "Placer.review": lambda: placer.review(cluster),
        "Placer.what_if": lambda: placer.what_if(cluster, [horus.Change(kind="release", job=900)], [job]),
        "Plan.columns": plan.columns, "Plan.work": plan.work,
        "Predictor.evaluate": lambda: predictor.evaluate([resnet], ["t4"], mem_mib=[5_000.0]),
        "Predictor.load": lambda: horus.Predictor.load(bundle), "Predictor.observe": lambda: predictor.observe(seen),
        "Predictor.predict": lambda: predictor.predict(resnet, ["t4"]), "Predictor.quality": predictor.quality,
        "Predictor.predict_rows": lambda: predictor.predict_rows([resnet], ["t4"]),
        "Predictor.serve": lambda: predictor.serve(horus.Graph.from_config("gpt2"), "t4", users=4, tokens_in=500, tokens_out=100),
        "Predictor.solve_service": lambda: predictor.solve_service(horus.Graph.from_config("gpt2"), "t4", tokens_in=500, tokens_out=100, token_ms=50),
        "Predictor.solve": lambda: predictor.solve(resnet, ["t4"], max_value=64), "Predictor.to_bytes": predictor.to_bytes,
        **{f"Queue.{name}": queued for name in ("push", "update", "remove", "serve", "window", "job", "pop")},
        "Queue.set_capacity": lambda: queue.set_capacity(1_000), "Queue.set_owner_usage": lambda: queue.set_owner_usage(1, 1_000),
        "SimResult.metrics": result.metrics, "SimResult.model": played.model, "Trace.summary": trace.summary,
        "Trace.columns": trace.columns, "Trace.replace": lambda: trace.replace(submit_us=[1, 2, 3]),
        "Trace.take": lambda: trace.take([0]), "Trace.synthetic": lambda: horus.Trace.synthetic(jobs=3),
        "Truth.with_sensitivities": lambda: truth.with_sensitivities(half),
        "Truth.from_model": lambda: horus.Truth.from_model(beliefs),
        "Truth.from_speeds": lambda: horus.Truth.from_speeds(["t4"], ["a"], [[1.0]]),
        "Cluster.set_metrics": metered, "Placer.set_metrics": metered, "Predictor.set_metrics": metered, "Metrics.rows": metrics.rows,
        "Metrics.text": metrics.text,
        "compare": lambda: horus.compare(trace, beliefs, truth, cluster_without(horus, make), {"horus": placer}),
        "simulate": lambda: horus.simulate(trace, beliefs, truth, cluster_without(horus, make), placer),
        "demand_rows": lambda: horus.demand_rows(demands), "demands_of": lambda: horus.demands_of(rows),
        "largest_slowdown": lambda: horus.largest_slowdown(5, 1_000, 9_000),
        "request_latency": lambda: horus.request_latency(5, 1_000), "read_jobs": lambda: horus.read_jobs(jobs, cluster),
        "feature_schema": horus.feature_schema, "gpus": horus.gpus, "policies": horus.policies, "queues": horus.queues,
    }
    slow = {"Catalogue.extend", "Graph.cost", "Graph.features", "Graph.from_onnx", "Graph.from_config", "InterferenceModel.fit",
            "InterferenceModel.load",
            "InterferenceModel.observe", "Placer.place_batch", "Predictor.evaluate", "Predictor.load", "Predictor.observe",
            "Predictor.predict", "Predictor.predict_rows", "Predictor.serve", "Predictor.solve", "Predictor.solve_service", "Predictor.to_bytes", "Predictor.quality", "compare",
            "simulate", "feature_schema", "Cluster.from_yaml", "read_jobs"}
    return calls, slow


def cluster_without(horus, make):
    return make.cluster(nodes=1, devices=1)


def wrong_calls(horus, make, resnet, predictor):
    cluster, job = make.cluster(), make.job()
    bad = horus.Placer(lambda candidate: 1 / 0)
    return [lambda: bad.place(cluster, job), lambda: horus.Job("x"), lambda: cluster.release(5), lambda: horus.Graph.from_onnx(b"x"),
            lambda: horus.Cluster.restore(b"x"), lambda: horus.Placer("nonsense"), lambda: predictor.predict(resnet, ["nonsense"]),
            lambda: horus.Predictor.load(b"x"), lambda: horus.InterferenceModel().slowdown("t4", np.zeros(3))]


def public_functions(horus):
    """Names of every function of the package and of its classes that are no values and no exceptions."""
    for name in horus.__all__:
        thing = getattr(horus, name)
        if inspect.isfunction(thing):
            yield name
        elif inspect.isclass(thing) and not issubclass(thing, (Exception, enum.Enum)) and not hasattr(thing, "__fields__"):
            yield from (f"{name}.{m}" for m in dir(thing) if not m.startswith("_") and callable(getattr(thing, m)))


def test_every_function_is_called(horus, make, resnet, predictor):
    calls, slow = right_calls(horus, make, resnet, predictor)
    left_out = {*LEFT_OUT, *(name for name in public_functions(horus) if name.split(".")[-1] in ("to_frame", "to_series", "from_frame"))}
    assert set(calls) | left_out == set(public_functions(horus)) | set(LEFT_OUT)
    assert slow <= set(calls)


def resident_bytes():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_stays_flat(horus, make, resnet, predictor):
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("no /proc")
    calls, slow = right_calls(horus, make, resnet, predictor)
    wrong = wrong_calls(horus, make, resnet, predictor)
    fast = [call for name, call in calls.items() if name not in slow]
    times = FLAT_CALLS // (len(fast) + len(wrong))

    def call_all(count):
        made = 0
        for call in fast:
            for _ in range(count):
                call()
        for call in wrong:
            for _ in range(count):
                with pytest.raises(Exception):
                    call()
        for name in slow:
            for _ in range(max(2, count // SLOW)):
                calls[name]()
                made += 1
        return made + count * (len(fast) + len(wrong))

    call_all(max(20, times // 10))
    before = resident_bytes()
    made = call_all(times)
    grown = resident_bytes() - before
    print(f"{made} calls: {grown / 1024:.0f} KiB more resident")
    assert grown < FLAT_BYTES
