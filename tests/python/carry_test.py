# SPDX-License-Identifier: Apache-2.0
"""Objects as others carry and show them: over spawned processes, as text, as tables of a notebook, without copies."""

import enum
import inspect
import multiprocessing

import numpy as np
import pytest

from conftest import GRAPHS

MINUTE = 60_000_000
SPEEDS = dict(gpu_types=["t4"], profiles=["a", "b"], alone=[[10.0, 20.0]],
              pairs={"gpu": [0], "a": [0], "b": [1], "speed_a": [0.9], "speed_b": [0.8]})


def steady(device, tenants):
    """An interference model that a spawned process can import."""
    return np.full(len(tenants), 1.25, np.float32)


def thrifty(candidate):
    """A policy that it can import."""
    return float(candidate.mem_mib)


@pytest.fixture(scope="module")
def objects(horus):
    """One of each class of the package, by its name."""
    graph = horus.Graph.from_onnx(GRAPHS / "resnet18.onnx")
    predictor = horus.Predictor()
    demand = predictor.predict(graph, "t4", horus.RunSpec(batch=8))
    cluster = horus.Cluster([horus.Node(id=1, cpu_milli=8_000, mem_mib=65_536, devices=[horus.Device("t4")] * 2)])
    job = horus.Job(id=5, demands={"t4": demand}, cpu_milli=100, mem_mib=10, priority=1)
    placer = horus.Placer()
    plan = placer.place(cluster, job)
    cluster.apply(plan)
    beliefs = {"a": demand, "b": demand}
    trace = horus.Trace(profile=["a", "b"], duration_us=[MINUTE, MINUTE])
    truth = horus.Truth.from_speeds(**SPEEDS)
    cluster_empty = horus.Cluster([horus.Node(id=1, cpu_milli=8_000, mem_mib=65_536, devices=[horus.Device("t4")] * 2)])
    comparison = horus.compare([trace, trace], beliefs, truth, cluster_empty, {"one": placer, "other": horus.Placer("exclusive")})
    shared = placer.what_if(cluster, [horus.Change(kind="release", job=5)], horus.Job(id=6, demands={"t4": demand}))
    seen = horus.Observations()
    seen.add_demand(7, "t4", mem_mib=100)
    queue = horus.Queue("srtf")
    queue.push(horus.QueuedJob(id=1))
    model = horus.InterferenceModel.from_callable(steady)
    asked = []
    horus.Placer(lambda candidate: asked.append(candidate) or 0.0).place(cluster, horus.Job(id=7, demands={"t4": demand}))
    found = [graph, predictor, demand, cluster, job, placer, plan, trace, truth, comparison, shared[0], seen, queue, model,
             horus.gpus(), graph.cost(), graph.features(), horus.feature_schema()[0], horus.RunSpec(batch=2), plan[0],
             plan[0].slots[0], comparison["one"][0], horus.SimOptions(queue="srtf"), horus.Outage(1, 2, 3), horus.Rebalance(),
             horus.Device("t4"), horus.Node(id=1), horus.Change(kind="release", job=1), horus.Workload(gpus=[1], shares=[1.0]),
             horus.SharedDevice("t4"), horus.ProfileDemand("a", "t4", demand), horus.QueueOptions(clusters=3),
             horus.QueuedJob(id=3), horus.SyntheticOptions(jobs=5), horus.Alternative(rate=1.0, demands={"t4": demand}),
             horus.Sensitivity(cpu_milli=[1], mem_mib=[1], speeds=[1.0]), horus.PlacerOptions(seed=3), horus.gpus()["a100-40gb"],
             horus.gpus()["a100-40gb"].mig_profiles[0], horus.request_latency(10, 1000), model.slowdown("t4", [demand, demand]),
             horus.InterferenceModel().quantile(0.95, "t4", [demand, demand]),
             predictor.solve(graph, ["t4"])[0], placer.explain(cluster, horus.Job(id=8, demands={"t4": demand})), asked[0],
             plan[0].effects[0], predictor.serve(horus.Graph.from_config("gpt2"), "t4", users=4, tokens_in=100, tokens_out=50),
             horus.Potential({"pairs": 1, "run": 1, "apart": 0, "exclusive": 1.0, "left_out": 0.0},
                             {"slowdown_bound": np.array([1.5]), "gain": np.array([0.5]), "pays": np.array([True])})]
    metrics = horus.Metrics()
    found += [metrics, metrics.rows()[0]]
    refused = placer.place(cluster, horus.Job(id=9, demands={"t4": demand}, cpu_milli=9_000))[0]
    found += [refused.miss]
    urgent = placer.preempt(cluster, horus.Job(id=10, demands={"t4": demand}, cpu_milli=7_950, priority=9))
    found += [*urgent.preemptions[:1], *urgent.moves[:1]]
    return {type(one).__name__: one for one in found}


NEVER_MADE = {"Move", "TenantReview", "ServiceRun"}  # of rebalancing and reviews alone, which place_test has; a plain dataclass


def classes(horus):
    exported = {name: getattr(horus, name) for name in horus.__all__}
    return {name: kind for name, kind in exported.items() if inspect.isclass(kind) and not issubclass(kind, (Exception, enum.Enum))}


def test_there_is_one_of_each_class(horus, objects):
    assert set(classes(horus)) - set(objects) <= NEVER_MADE


def test_every_object_shows_itself(horus, objects):
    for name, value in objects.items():
        text = repr(value)
        assert name in text and " object at 0x" not in text, text
        assert len(text) < 4_000, name


def test_every_object_is_a_table_in_a_notebook(horus, objects):
    for name in classes(horus):
        if name in objects and name not in ("Quantile", "Slowdown"):  # tuples of columns, as numpy shows them
            html = objects[name]._repr_html_()
            assert "<table>" in html and "<script" not in html, name


def test_text_of_others_is_escaped(horus):
    job = horus.Job(id=1, name="<script>alert(1)</script>")
    assert "<script" not in job._repr_html_() and "&lt;script" in job._repr_html_()


# What a spawned process answers about what it was given.
def told(value):
    kind = type(value).__name__
    if kind == "Graph":
        return value.cost().parameters
    if kind == "Predictor":
        import horus
        return value.predict(horus.Graph.from_onnx(GRAPHS / "resnet18.onnx"), "t4").mem_mib
    if kind == "Cluster":
        return value.info()["state_hash"]
    if kind == "SimResult":
        return value.metrics()["jct_us"]["mean"], value.jobs["job"].tolist()
    if kind == "Comparison":
        return str(value)
    if kind == "Plan":
        return [decision.text for decision in value]
    if kind == "InterferenceModel":
        import horus
        return value.slowdown("t4", [horus.Demand(gpu_util_pct=50)] * 2).estimate.tolist()
    if kind == "Trace":
        return value.summary()["digest"]
    if kind == "Observations":
        return value.to_bytes()
    if kind == "Placer":
        return repr(value)
    if kind == "Truth":
        return value.bytes_held
    return repr(value)


CARRIED = ("Graph", "Predictor", "Cluster", "SimResult", "Comparison", "Plan", "InterferenceModel", "Trace", "Observations",
           "Placer", "Truth", "Catalogue", "Job", "Node", "Demand", "Potential", "SimOptions", "Decision", "StepCost")


def test_spawned_processes_are_given_and_give_back(horus, objects):
    values = [objects[name] for name in CARRIED] + [horus.Placer(thrifty), horus.Truth.from_model({"a": horus.Demand()}, steady),
                                                    horus.Truth.from_speeds(**SPEEDS).with_sensitivities({
                                                        "a": horus.Sensitivity(cpu_milli=[1], mem_mib=[1], speeds=[1.0])})]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(told, values) == [told(value) for value in values]
        for mine, theirs in zip(values, pool.map(same, values)):
            assert told(theirs) == told(mine), type(mine)


def same(value):
    """Back again."""
    return value


# Columns without copies.
def test_columns_that_fit_are_not_copied(horus):
    from horus._args import column

    fitting = np.arange(5, dtype=np.float64)
    assert np.shares_memory(column(fitting, np.float64, "x"), fitting)
    assert not np.shares_memory(column(fitting[::2], np.float64, "x"), fitting)  # the C ABI takes contiguous ones
    assert column(np.arange(5, dtype=np.float32), np.float64, "x").dtype == np.float64


def test_rows_of_demands_are_seen_where_they_lie(horus):
    rows = horus.demand_rows(gpu_util_pct=[50.0, 50, 50, 50])
    seen = []

    def metered(device, tenants):
        seen.append(tenants["gpu_util_pct"].tolist())
        return np.ones(len(tenants))

    model = horus.InterferenceModel.from_callable(metered)
    model.slowdown("t4", rows.reshape(2, 2))
    rows["gpu_util_pct"][0] = 10  # no copy was kept, none is made
    model.slowdown("t4", rows.reshape(2, 2))
    assert seen[0] == [50, 50] and [10, 50] in [sorted(one) for one in seen[2:]]
    for wrong, words in ((rows.reshape(2, 2)[:, ::-1], "C-contiguous"),
                         (np.zeros((2, 2)), "demand_dtype"), (rows.reshape(1, 2, 2), "2 dimensions")):
        with pytest.raises(horus.InvalidArgument, match=words):
            model.slowdown("t4", wrong)


def test_a_million_rows_cost_their_answer_alone(horus):
    import tracemalloc

    rows = horus.demand_rows(2_000_000).reshape(-1, 2)
    rows["gpu_util_pct"] = 30
    tracemalloc.start()
    found = horus.InterferenceModel("utilisation").slowdown("t4", rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.2 * (found.estimate.nbytes + found.upper.nbytes) < rows.nbytes / 4
