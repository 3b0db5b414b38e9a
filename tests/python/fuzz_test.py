# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments to every function end in exceptions, never in the interpreter's end; memory stays flat."""

import gc
import inspect
import os
import random

import numpy as np
import pytest

CALLS = int(os.environ.get("HORUS_FUZZ_CALLS", "60"))  # of each function
FLAT_CALLS = int(os.environ.get("HORUS_FLAT_CALLS", "2000"))  # of each function; a million in all is the nightly run
FLAT_BYTES = 1 << 20


def objects(horus, make, resnet):
    """One object of each class that has methods."""
    cluster, placer = make.cluster(), horus.Placer()
    trace = horus.Trace(profile=["a"], duration_us=[1_000_000])
    beliefs = {"a": make.demand()}
    truth = horus.Truth.from_model(beliefs)
    return [resnet, resnet.features(), horus.Predictor(), horus.Observations(), horus.InterferenceModel(), cluster, placer,
            placer.place(cluster, make.job()), placer.explain(cluster, make.job()), horus.gpus(), trace, truth,
            horus.simulate(trace, beliefs, truth, cluster, placer)]


def functions(things):
    for thing in things:
        for name in dir(thing):
            if not name.startswith("_") and callable(getattr(thing, name)):
                yield f"{type(thing).__name__}.{name}", getattr(thing, name)


def wrong_values(horus, make):
    return [None, 0, -1, 2**31, 2**64, 2**200, 1.5, float("nan"), float("inf"), "", "x", "t4", "\0", "\ud800", b"", b"\xff" * 9,
            [], [1], ["t4"], [None], (), {}, {"a": 1}, {1: "a"}, set(), object(), int, lambda *a: 1 / 0, True, range(3),
            np.zeros(3), np.zeros((2, 2)), np.array("x"), np.zeros(2, horus.demand_dtype), np.float32(3), np.array([], object),
            memoryview(b"abcdef")[::2], horus.Job(), make.job(), horus.Node(), horus.Demand(), horus.RunSpec(batch=2**62),
            horus.Slot(9, 9, 9), make.cluster(), horus.Placer(), horus.Change(kind="place"), horus.SharedDevice("t4")]


def test_wrong_arguments_never_end_the_interpreter(horus, make, resnet):
    draw = random.Random(3)
    values = wrong_values(horus, make)
    things = objects(horus, make, resnet)
    made = [getattr(horus, name) for name in horus.__all__ if inspect.isclass(getattr(horus, name))]
    statics = [horus.Graph.from_onnx, horus.Graph.from_torch, horus.Predictor.load, horus.Observations.restore,
               horus.InterferenceModel.load, horus.InterferenceModel.from_callable, horus.InterferenceModel.from_table,
               horus.Cluster.restore, horus.Truth.from_model, horus.Truth.from_speeds, horus.simulate, horus.compare,
               horus.demand_rows, horus.Trace.from_frame]
    raised = 0
    for name, function in [*functions(things), *((f.__name__, f) for f in [*made, *statics])]:
        for _ in range(CALLS):
            arguments = [draw.choice(values) for _ in range(draw.randrange(4))]
            try:
                function(*arguments)
            except Exception as error:
                raised += 1
                assert not isinstance(error, horus.InternalError), (name, arguments)
    assert raised > CALLS * len(made) / 2


def test_wrong_fields_never_end_the_interpreter(horus, make):
    draw = random.Random(4)
    values = wrong_values(horus, make)
    records = [getattr(horus, name) for name in horus.__all__ if hasattr(getattr(horus, name), "__fields__")]
    cluster, placer = make.cluster(), horus.Placer()
    for record in records:
        names = list(record.__fields__)
        for _ in range(CALLS * 4):
            try:
                made = record(**{draw.choice(names): draw.choice(values) for _ in range(3)})
                if record is horus.Job:
                    placer.place(cluster, made)
                if record is horus.Node:
                    cluster.add_node(made)
            except Exception as error:
                assert not isinstance(error, horus.InternalError), record
    assert len(records) > 15


def resident_bytes():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_stays_flat(horus, make, resnet, predictor):
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("no /proc")
    cluster, placer, model, job = make.cluster(), horus.Placer(), horus.InterferenceModel(), make.job()
    rows = horus.demand_rows([make.demand(), make.demand(80)])
    policy = horus.Placer(lambda candidate: float(len(candidate.demands)))
    bad = horus.Placer(lambda candidate: 1 / 0)

    def raises(function, *arguments):
        with pytest.raises(Exception):
            function(*arguments)

    def round_trip():
        plan = placer.place(cluster, job)
        cluster.apply(plan)
        cluster.release(1)
        return plan.columns(), list(plan), cluster.info(), cluster.nodes

    calls = [round_trip, lambda: resnet.cost(), lambda: resnet.features(), lambda: predictor.predict(resnet, ["t4"]),
             lambda: model.slowdown("t4", rows), lambda: model.slowdown("t4", [make.demand()]), lambda: cluster.snapshot(),
             lambda: horus.Cluster.restore(cluster.snapshot()), lambda: policy.place(cluster, job),
             lambda: raises(bad.place, cluster, job), lambda: raises(horus.Job, "x"), lambda: placer.explain(cluster, job),
             lambda: raises(cluster.release, 5), lambda: make.job(3).replace(id=4).to_dict(),
             lambda: horus.Predictor.load(predictor.to_bytes()) if draw.random() < 0.01 else None]
    draw = random.Random(0)
    for call in calls:
        for _ in range(200):
            call()
    before = resident_bytes()
    for call in calls:
        for _ in range(FLAT_CALLS):
            call()
    assert resident_bytes() - before < FLAT_BYTES
