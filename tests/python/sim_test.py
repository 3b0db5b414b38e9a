# SPDX-License-Identifier: Apache-2.0
"""Traces, truths, simulations, comparisons."""

import pickle
import re

import numpy as np
import pytest

from conftest import ROOT

HOUR = 3_600_000_000


@pytest.fixture
def play(horus, make):
    """A morning of 60 jobs on 8 GPUs."""
    draw = np.random.default_rng(1)
    count = 60
    trace = horus.Trace(profile=[("small", "large")[i % 2] for i in range(count)],
                        submit_us=np.sort(draw.integers(0, HOUR, count)), duration_us=draw.integers(HOUR // 10, HOUR, count))
    beliefs = {"small": make.demand(20, 2_000, profile_id=1), "large": {"any": make.demand(80, 6_000, profile_id=2)}}
    return trace, beliefs, horus.Truth.from_model(beliefs), make.cluster(nodes=2, devices=2)


def test_sharing_beats_exclusive_use_where_jobs_are_small(horus, play):
    found = horus.compare(*play, {name: horus.Placer(name, slowdown_bound=3) for name in ("exclusive", "horus")})
    assert list(found) == ["exclusive", "horus"]
    means = {name: result.metrics()["jct_us"]["mean"] for name, (result,) in found.items()}
    assert means["horus"] < means["exclusive"]
    assert found["horus"][0].metrics()["finished"] == 60


def test_a_comparison_tells_the_metrics_of_the_command(horus):
    written = (ROOT / "tests/cli/compare_keys.txt").read_text()
    by_linear_program = {"bound_rate", "gap_closed"}
    told = {metric["name"] for metric in horus.Comparison({}, "").metrics}
    assert told | by_linear_program == set(re.findall(r"^runs\[\]\.metrics\.(\w+)$", written, re.M))


def test_a_comparison_has_paired_intervals(horus, play):
    trace, *rest = play
    late = trace.replace(submit_us=trace.columns()["submit_us"] * 2)
    told = []
    found = horus.compare([trace, late, trace], *rest, {"exclusive": horus.Placer("exclusive"), "horus": horus.Placer()},
                          baseline="horus", progress=told.append)
    assert found.baseline == "horus" and found.seeds == [0, 1, 2] and told == sorted(told)
    row = {row["policy"]: row["metrics"]["jct_mean_s"] for row in found.summary}["exclusive"]
    jct = {name: np.array([result.metrics()["jct_us"]["mean"] / 1e6 for result in results]) for name, results in found.items()}
    off = jct["exclusive"] - jct["horus"]
    half = 4.30265 * off.std(ddof=1) / np.sqrt(3)  # Student's t of 2 degrees of freedom
    assert row["mean"] == pytest.approx(jct["exclusive"].mean()) and row["difference"] == pytest.approx(off.mean())
    assert row["difference_high"] - row["difference"] == pytest.approx(half, rel=1e-5)
    assert "exclusive" in str(found) and "±" in str(found) and len(found.to_frame()) == 6
    alone = horus.compare(trace, *rest, {"horus": horus.Placer()}).summary[0]["metrics"]["jct_mean_s"]
    assert alone["difference_low"] is None
    with pytest.raises(horus.InvalidArgument, match="baseline: expected one of a, found 'b'"):
        horus.compare(trace, *rest, {"a": horus.Placer()}, baseline="b")
    with pytest.raises(horus.InvalidArgument, match="traces: expected at least one"):
        horus.compare([], *rest, {"a": horus.Placer()})


def test_who_finishes_nothing_has_no_completion_time_and_wins_nothing(horus, play):
    found = horus.compare(*play, {"exclusive": horus.Placer("exclusive"), "never": horus.Placer(lambda candidate: None)})
    metrics = found["never"][0].metrics()
    assert metrics["finished"] == 0 and metrics["makespan_us"] == -1
    assert all(np.isnan(metrics[name]["mean"]) for name in ("jct_us", "wait_us", "slowdown")) and np.isnan(metrics["jain"])
    lines = str(found).splitlines()
    assert "finished" in lines[0] and "60 of 60" in lines[1] and lines[2].split() == ["never", "0", "of", "60", "\u2013", "0"]
    assert lines[3].endswith("policies that finish different jobs cannot be compared.") and lines[3] in found._repr_html_()
    never = {row["policy"]: row["metrics"] for row in found.summary}["never"]
    assert never["jct_mean_s"]["difference"] is None and never["makespan_s"]["difference"] is None
    assert never["work_rate"]["difference"] < 0
    horus.plot.policies(found)


def test_policies_that_are_compared_look_equally_far_ahead(horus, play):
    """A first fit that nobody gave a look-ahead passes the big job at the head, as horus may."""
    placers = {"first-fit": horus.Placer("first-fit"), "horus": horus.Placer()}
    found, stated, strict = (horus.compare(*play, placers, how) for how in (
        None, horus.SimOptions(look_ahead=50), {"first-fit": horus.SimOptions(look_ahead=1), "horus": None}))
    for name in placers:
        assert found[name][0].metrics() == stated[name][0].metrics()
    assert strict["first-fit"][0].metrics() != found["first-fit"][0].metrics()


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


def test_measured_speeds_are_a_truth(horus, make, play):
    trace, beliefs, _, cluster = play
    truth = horus.Truth.from_speeds(["v100-pcie-16gb"], ["small", "large"], [[10.0, 5.0]],
                                    {"gpu": [0], "a": [0], "b": [1], "speed_a": [0.5], "speed_b": [0.5]})
    result = horus.simulate(trace, beliefs, truth, cluster, horus.Placer())
    assert result.metrics()["finished"] == 60
    assert pickle.loads(pickle.dumps(truth)).__reduce__()[0] == truth.__reduce__()[0]
    with pytest.raises(horus.InvalidArgument, match=r"alone: expected \[1 GPU types x 2 profiles\], found \(3,\)"):
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


def test_what_is_learned_is_a_model(horus, play):
    trace, beliefs, _, cluster = play

    def twice(device, tenants):
        return np.full(len(tenants), 2.0) if len(tenants) > 1 else np.ones(1)

    truth = horus.Truth.from_model(beliefs, twice)
    options = horus.SimOptions(learns="pairs", observe_us=60_000_000)
    result = horus.simulate(trace, beliefs, truth, cluster, horus.Placer("first-fit", slowdown_bound=10), options)
    model = result.model()
    small, large = beliefs["small"], beliefs["large"]["any"]
    believed = horus.InterferenceModel().slowdown("v100-pcie-16gb", [small, large]).estimate
    learned = model.slowdown("v100-pcie-16gb", [small, large]).estimate
    assert learned.tolist() == pytest.approx([2, 2], rel=0.05) and believed.max() < 1.95
    with pytest.raises(horus.InvalidArgument):
        horus.simulate(*play, horus.Placer()).model()
    with pytest.raises(horus.StateError, match="model"):
        pickle.loads(pickle.dumps(result)).model()


def test_cores_and_memory_change_speeds(horus, make):
    beliefs = {"a": make.demand(50, profile_id=1)}
    trace = horus.Trace(profile=["a"] * 4, duration_us=[HOUR] * 4, cpu_milli=[1_000] * 4, mem_mib=[1_024] * 4)
    half = horus.Sensitivity(cpu_milli=[1_000, 16_000], mem_mib=[1_024], speeds=[0.5, 1])
    plain = horus.Truth.from_model(beliefs)
    told = horus.SimOptions(round_us=60_000_000, preempt=True, sensitivities={"a": half})
    first, second = (horus.simulate(trace, beliefs, truth, make.cluster(2, 2), horus.Placer("exclusive")).metrics()
                     for truth in (plain, plain.with_sensitivities({"a": half})))
    assert second["makespan_us"] > 1.5 * first["makespan_us"]
    granted = horus.simulate(trace, beliefs, plain.with_sensitivities({"a": half}), make.cluster(2, 2),
                             horus.Placer("synergy-tune"), told).metrics()
    assert granted["makespan_us"] < second["makespan_us"]  # who is told of them grants cores
    with pytest.raises(horus.InvalidArgument, match=r"sensitivities\[b\].speeds: expected 2 values"):
        plain.with_sensitivities({"b": horus.Sensitivity(cpu_milli=[1, 2], mem_mib=[1], speeds=[1])})


def test_queues_of_simulations_have_options(horus, play):
    fair = horus.QueueOptions(patience_us=1, las_thresholds_gpu_us=[60_000_000])
    first, again = (horus.simulate(*play, horus.Placer("exclusive"), horus.SimOptions(queue="las", queue_options=how)).jobs
                    for how in (None, fair))
    assert (first["start_us"] != again["start_us"]).any() or (first["end_us"] == again["end_us"]).all()
    with pytest.raises(horus.Error, match="las_thresholds"):
        horus.simulate(*play, horus.Placer(), horus.SimOptions(queue="las", queue_options=horus.QueueOptions(
            las_thresholds_gpu_us=[5, 4])))
    moves = horus.SimOptions(rebalance_us=HOUR // 8, rebalance=horus.Rebalance(max_migrations=1, downtime_s=-1))
    assert horus.simulate(*play, horus.Placer(), moves).metrics()["finished"] == 60


def test_what_profiling_finds_is_believed(horus, make):
    wrong, right = make.demand(10, 100, profile_id=1), make.demand(90, 12_000, profile_id=1)
    cluster = make.cluster(2, 1)
    cluster.add_node(horus.Node(id=9, cpu_milli=8_000, mem_mib=65_536, labels={"horus-profiling": ""},
                                devices=[horus.Device("v100-pcie-16gb")]))
    trace = horus.Trace(profile=["a"] * 6, duration_us=[HOUR] * 6)
    truth = horus.Truth.from_model({"a": right})
    options = horus.SimOptions(profiling_us=60_000_000, measured=[horus.ProfileDemand("a", "any", right)])
    blind, seen = (horus.simulate(trace, {"a": wrong}, truth, cluster, horus.Placer("first-fit"), how).metrics()
                   for how in (None, options))
    assert blind["out_of_memory"] > 0 and seen["out_of_memory"] < blind["out_of_memory"]
