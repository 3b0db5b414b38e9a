# SPDX-License-Identifier: Apache-2.0
"""Traces, truths, simulations, comparisons."""

import pickle

import numpy as np
import pytest

HOUR = 3_600_000_000


@pytest.fixture
def play(horus, world):
    """A morning of 60 jobs on 8 GPUs."""
    draw = np.random.default_rng(1)
    count = 60
    trace = horus.Trace(profile=[("small", "large")[i % 2] for i in range(count)],
                        submit_us=np.sort(draw.integers(0, HOUR, count)), duration_us=draw.integers(HOUR // 10, HOUR, count))
    beliefs = {"small": world.demand(20, 2_000, profile_id=1), "large": {"any": world.demand(80, 6_000, profile_id=2)}}
    return trace, beliefs, horus.Truth.from_model(beliefs), world.cluster(nodes=2, devices=2)


def test_sharing_beats_exclusive_use_where_jobs_are_small(horus, play):
    found = horus.compare(*play, {name: horus.Placer(name, slowdown_bound=3) for name in ("exclusive", "horus")})
    assert list(found) == ["exclusive", "horus"]
    means = {name: result.metrics()["jct_us"]["mean"] for name, result in found.items()}
    assert means["horus"] < means["exclusive"]
    assert found["horus"].metrics()["finished"] == 60


def test_results_are_columns_and_equal_arguments_give_equal_results(horus, play):
    first, again = (horus.simulate(*play, horus.Placer()) for _ in range(2))
    for name, values in first.jobs.items():
        assert (values == again.jobs[name]).all() and len(values) == 60, name
    jobs = first.jobs
    assert set(jobs["end"]) == {"finished"} and (jobs["end_us"] > jobs["start_us"]).all()
    assert first.metrics() == again.metrics()
    assert len(first.decision_times_us) == first.metrics()["decisions"] and first.backlog_work.shape == (2,)


def test_a_result_survives_pickling(horus, play):
    result = horus.simulate(*play, horus.Placer())
    again = pickle.loads(pickle.dumps(result))
    assert again.metrics() == result.metrics() and repr(again) == repr(result)
    assert all((again.jobs[name] == values).all() for name, values in result.jobs.items())
    with pytest.raises(horus.StateError, match="pickled"):
        again.metrics(to_us=5)


def test_traces_and_truths_survive_pickling(horus, play):
    trace, beliefs, truth, cluster = play
    copies = pickle.loads(pickle.dumps((trace, beliefs, truth, cluster)))
    assert copies[0].summary() == trace.summary()
    assert horus.simulate(*copies, horus.Placer()).metrics() == horus.simulate(*play, horus.Placer()).metrics()


def test_measured_speeds_are_a_truth(horus, world, play):
    trace, beliefs, _, cluster = play
    truth = horus.Truth.from_speeds(["v100-pcie-16gb"], ["small", "large"], [[10.0, 5.0]],
                                    {"gpu": [0], "a": [0], "b": [1], "speed_a": [0.5], "speed_b": [0.5]})
    result = horus.simulate(trace, beliefs, truth, cluster, horus.Placer())
    assert result.metrics()["finished"] == 60
    assert pickle.loads(pickle.dumps(truth)).__reduce__()[0] == truth.__reduce__()[0]
    with pytest.raises(horus.InvalidArgument, match="alone: expected 2 rows, found 3"):
        horus.Truth.from_speeds(["v100-pcie-16gb"], ["small", "large"], [1.0, 2.0, 3.0])


def test_observers_see_every_job_and_may_stop(horus, play):
    events = []
    horus.simulate(*play, horus.Placer(), observer=lambda *event: events.append(event))
    kinds = [kind for kind, _, _, _ in events]
    assert kinds.count("arrive") == kinds.count("finish") == 60 and kinds.count("start") >= 60
    assert all(isinstance(slots[0], horus.Slot) for kind, _, _, slots in events if kind == "start")
    assert [time for _, time, _, _ in events] == sorted(time for _, time, _, _ in events)
    with pytest.raises(horus.Cancelled):
        horus.simulate(*play, horus.Placer(), observer=lambda *event: False)

    class Enough(Exception):
        pass

    def enough(*event):
        raise Enough

    with pytest.raises(Enough):
        horus.simulate(*play, horus.Placer(), observer=enough)


def test_a_policy_and_a_model_in_python_run_inside_the_simulator(horus, play):
    trace, beliefs, truth, cluster = play

    def spread(candidate):
        return float(len(candidate.demands))

    def additive(device, tenants):
        return np.maximum(1.0, tenants["gpu_util_pct"].sum() / 100.0) * np.ones(len(tenants))

    placer = horus.Placer(spread, interference=additive)
    slow = horus.Truth.from_model(beliefs, additive)
    assert horus.simulate(trace, beliefs, slow, cluster, placer).metrics()["finished"] == 60

    def broken(device, tenants):
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        horus.simulate(trace, beliefs, horus.Truth.from_model(beliefs, broken), cluster, horus.Placer("first-fit"))


def test_options_and_outages(horus, play):
    until = horus.SimOptions(queue="srtf", horizon_us=HOUR // 2, outages=[horus.Outage(1, 0, HOUR // 4)])
    metrics = horus.simulate(*play, horus.Placer(), until).metrics()
    assert metrics["finished"] < 60 and metrics["end_us"] <= HOUR // 2
    with pytest.raises(horus.NotFound, match="nonsense"):
        horus.simulate(*play, horus.Placer(), horus.SimOptions(queue="nonsense"))
    assert "horus-plus" in horus.queues()


@pytest.mark.parametrize("columns, words", [
    (dict(profile=["a"], duration_us=[1, 2]), ("duration_us", "1 rows", "2")), (dict(profile=[3]), ("profile[0]", "str")),
    (dict(profile=["a"], nonsense=[1]), ("nonsense", "submit_us")), (dict(profile=["a"], kind=["x"]), ("kind[0]", "x")),
    (dict(profile=["a"], duration_us=[1], owner=["x", "y"]), ("owner", "1 rows", "2")),
    (dict(profile=["a"], duration_us=[-5]), ("duration",)), (dict(profile=["a"], submit_us=[0.5]), ("submit_us", "int64")),
])
def test_wrong_traces_are_named(horus, columns, words):
    with pytest.raises((horus.Error, TypeError)) as caught:
        horus.Trace(**columns)
    for word in words:
        assert word in str(caught.value)


def test_frames_become_traces(horus, play):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"profile": ["a", "b"], "duration_us": [5, 6], "submit_us": [0, 1], "owner": ["x", ""]})
    assert horus.Trace.from_frame(frame).summary()["owners"] == 1
    assert horus.simulate(*play, horus.Placer()).to_frame().shape[0] == 60
