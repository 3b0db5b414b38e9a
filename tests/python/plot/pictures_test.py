# SPDX-License-Identifier: Apache-2.0
"""Pictures: what lies in the axes, units on their labels, and clear errors. No pixels."""

import types

import numpy as np
import pytest

from horus import plot
from horus.plot import measure, style
from horus.plot import timeline as lanes

HOUR_US = 3_600_000_000
MEMORY = {"weights_bytes": 1 << 30, "gradients_bytes": 1 << 30, "optimizer_bytes": 2 << 30, "activations_bytes": 4 << 30,
          "upper_without_context_bytes": 10 << 30}
GPU = {"name": "v100", "fp32_gflops": 15_000, "mem_bandwidth_mb_s": 900_000}
CONV = {"op_type": "Conv", "forward_flops": 2e9, "backward_flops": 4e9, "bytes": 2e8, "time_us": 1000.0, "bound_by": "compute"}


def events(jobs=4, gpus=2):
    for job in range(jobs):
        yield {"time_us": job * HOUR_US, "event": "arrive", "job": job, "profile": f"type {job % 2}"}
        yield {"time_us": job * HOUR_US, "event": "start", "job": job, "node": "n0", "gpus": [job % gpus]}
    for job in range(jobs):
        yield {"time_us": (jobs + job) * HOUR_US, "event": "finish", "job": job, "node": "n0", "gpus": [job % gpus]}


def comparison(**change):
    change = {"mean": 80.0, "difference": -20.0, "difference_low": -30.0, "difference_high": -10.0, **change}
    zero = {"mean": 100.0, "difference": 0.0, "difference_low": 0.0, "difference_high": 0.0}
    return {"baseline": "exclusive", "seeds": [1, 2], "metrics": [{"name": "jct_mean_s", "better": "lower"}],
            "summary": [{"workload": "w", "policy": "exclusive", "metrics": {"jct_mean_s": zero}},
                        {"workload": "w", "policy": "horus", "metrics": {"jct_mean_s": change}}]}


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# Slowdown matrix


def test_matrix_holds_the_slowdowns_and_names():
    ax = plot.slowdown_matrix([[1.1, 1.5], [2.5, np.nan]], ["a", "b"], bound=2)
    assert np.allclose(ax.images[0].get_array().filled(0), [[1.1, 1.5], [2.5, 0]])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]
    assert {t.get_text() for t in ax.texts} == {"1.10", "1.50", "2.50", "?"}
    assert ax.collections[0].get_offsets().shape == (1, 2)  # one cell above the bound
    assert "shared time / time alone" in ax.figure.axes[1].get_ylabel()


def test_matrix_takes_columns_and_averages_what_was_measured_twice():
    ax = plot.slowdown_matrix({"victim": ["a", "b", "a"], "other": ["b", "a", "b"], "slowdown": [1.0, 3.0, 2.0]})
    assert ax.images[0].get_array()[0, 1] == 1.5 and ax.images[0].get_array()[1, 0] == 3.0


def test_matrix_takes_an_object():
    ax = plot.slowdown_matrix(types.SimpleNamespace(slowdowns=[[1.2]], jobs=["x"]))
    assert ax.get_xlabel() == "beside"


@pytest.mark.parametrize(("values", "jobs", "says"), [
    ([], None, "square matrix"), ([[1, 2]], None, r"found shape \(1, 2\)"), ([[1.0]], ["a", "b"], "expected 1 names, found 2"),
    ([["x"]], None, "expected numbers"), ([[np.nan]], None, "at least one finite"), (np.ones((401, 401)), None, "at most 400 jobs"),
])
def test_matrix_refuses(values, jobs, says):
    with pytest.raises(ValueError, match=says):
        plot.slowdown_matrix(values, jobs)


# Step memory


def test_memory_bars_sum_to_the_parts_in_gib():
    ax = plot.step_memory({"resnet": {"memory": MEMORY}, "bert": MEMORY}, gpu_memory_gib=16)
    ends = [max(bar.get_x() + bar.get_width() for bar in ax.patches if abs(bar.get_y() + 0.3 - row) < 0.1) for row in (0, 1)]
    assert ends == [8.0, 8.0]
    assert "GiB" in ax.get_xlabel() and "GPU: 16 GiB" in labels(ax)
    assert len({bar.get_hatch() for bar in ax.patches}) == 4  # a hatch a part


def test_memory_counts_the_context_of_the_one_gpu():
    ax = plot.step_memory({"model": {"name": "net"}, "memory": MEMORY, "gpus": [{"context_mib": 1024}]})
    assert max(bar.get_x() + bar.get_width() for bar in ax.patches) == 9.0
    assert [t.get_text() for t in ax.get_yticklabels()] == ["net"]


@pytest.mark.parametrize(("jobs", "says"), [({}, "at least one, found none"), (3, "found int"), ({"a": {}}, "a: expected 'memory'|expected 'memory'"),
                                            ({"a": {"weights_bytes": 0}}, "none above 0 bytes")])
def test_memory_refuses(jobs, says):
    with pytest.raises(ValueError, match=says):
        plot.step_memory(jobs)


# Roofline


def test_roofline_places_operators_by_intensity_and_rate():
    ax = plot.roofline([CONV], GPU)
    assert ax.collections[0].get_offsets().tolist() == [[30.0, 6000.0]]  # 6 GFLOP of 0.2 GB in 1 ms
    roof = ax.lines[0]
    assert max(roof.get_ydata()) == 15_000 and roof.get_xdata()[1] == pytest.approx(15_000 / 900)
    assert "FLOP per byte" in ax.get_xlabel() and "GFLOP/s" in ax.get_ylabel()


@pytest.mark.parametrize(("operators", "gpu", "says"), [
    ([], GPU, "at least one, found none"), ([{**CONV, "time_us": None}], GPU, r"operators\[0\]: time_us: expected microseconds"),
    ([{**CONV, "forward_flops": 0, "backward_flops": 0}], GPU, "above 0, found none"), ([CONV], {}, "gpu: expected 'fp32_gflops'"),
    ([CONV], "a100", r"gpu: expected a horus.Gpu, such as horus.gpus\(\)"), ("conv", GPU, "operators: expected rows with bytes and time_us"),
])
def test_roofline_refuses(operators, gpu, says):
    with pytest.raises(ValueError, match=says):
        plot.roofline(operators, gpu)


# Timeline of GPUs


def test_lanes_hold_each_spell_at_its_hours():
    ax = plot.gpu_timeline(list(events()))
    bars = sorted((round(bar.get_x(), 6), round(bar.get_width(), 6)) for bar in ax.patches)
    assert bars == [(0, 4), (1, 4), (2, 4), (3, 4)]
    assert ax.get_xlabel() == "time (h)" and labels(ax) == ["type 0", "type 1"]


def test_tenants_of_a_gpu_lie_apart():
    ax = plot.gpu_timeline(list(events(jobs=2, gpus=1)))
    low, high = sorted((bar.get_y(), bar.get_y() + bar.get_height()) for bar in ax.patches)
    assert low[1] <= high[0] + 1e-9


def test_many_spells_become_counts_of_tenants(monkeypatch):
    monkeypatch.setattr(lanes, "MOST_SPELLS", 1)
    ax = plot.gpu_timeline(list(events()))
    assert ax.images[0].get_array().shape == (2, lanes.BINS) and ax.images[0].get_array().max() == 2
    assert "tenants" in ax.figure.axes[1].get_ylabel()


def test_gpus_that_are_left_out_are_told():
    assert plot.from_events(list(events())).plot(most_gpus=1).get_title(loc="left") == "1 of 2 GPUs"


@pytest.mark.parametrize("picture", [plot.gpu_timeline, plot.utilisation, plot.fragmentation])
def test_pictures_over_time_refuse_no_events(picture):
    with pytest.raises(ValueError, match="expected at least one, found none|expected at least one start"):
        picture([])


# Completion times


def test_distribution_reaches_100_pct_at_the_longest_job():
    ax = plot.jct_distribution({"exclusive": [3600.0, 7200.0], "horus": np.array([3600.0])})
    line = ax.lines[0]
    assert line.get_xdata()[-1] == 2.0 and line.get_ydata()[-1] == 100
    assert "(h)" in ax.get_xlabel() and "%" in ax.get_ylabel() and labels(ax)[0].startswith("exclusive (2 jobs")


def test_a_million_jobs_are_a_few_hundred_points():
    from horus.plot.jct import POINTS

    ax = plot.jct_distribution(np.arange(1.0, 1_000_001.0))
    assert len(ax.lines[0].get_xdata()) == POINTS


def test_jobs_that_did_not_finish_do_not_count():
    ax = plot.jct_distribution({"arrive_us": [0, 0], "finish_us": [HOUR_US, -1]})
    assert set(ax.lines[0].get_xdata()) == {1.0}


@pytest.mark.parametrize(("runs", "says"), [({}, "found none"), ([], "jobs that finished, found none"), ([-1.0], "0 and more"),
                                            (["x"], "expected numbers"), ({"arrive_us": [0], "finish_us": [1, 2]}, "expected 2 values, found 1")])
def test_distribution_refuses(runs, says):
    with pytest.raises(ValueError, match=says):
        plot.jct_distribution(runs)


# Use over time


def test_utilisation_is_in_per_cent_of_the_cluster():
    ax = plot.utilisation(list(events()), gpus_of_node={"n0": 4})
    top = max(area.get_paths()[0].vertices[:, 1].max() for area in ax.collections)
    assert top == pytest.approx(50)  # two of four GPUs
    assert "% of the 4 of the cluster" in ax.get_ylabel() and ax.get_xlabel() == "time (h)"


def test_fragmentation_is_in_per_cent_of_idle_gpus():
    ax = plot.fragmentation(list(events()), gpus_of_node={"n0": 4})
    assert ax.lines[0].get_ydata().max() == pytest.approx(100) and "% of idle" in ax.get_ylabel()


def test_a_usage_that_was_measured_is_taken_as_it_is():
    usage = measure.usage_over_time(lanes.as_timeline(list(events())), bins=7)
    assert len(plot.fragmentation(usage).lines[0].get_xdata()) == 8


# Policies


def test_policies_show_the_change_in_per_cent_with_its_interval():
    ax = plot.policies(comparison())
    bars = ax.containers[1]
    assert bars.lines[0].get_xdata()[0] == pytest.approx(-20)
    assert bars.lines[2][0].get_segments()[0][:, 0].tolist() == pytest.approx([-30, -10])
    assert bars.lines[0].get_markerfacecolor() == style.PALETTE[0]  # the interval excludes 0
    assert "%" in ax.get_xlabel() and "lower is better" in ax.get_xlabel()


def test_an_interval_with_0_is_a_hollow_point():
    bars = plot.policies(comparison(difference_high=1.0)).containers[1]
    assert bars.lines[0].get_markerfacecolor() == "white"


def test_one_seed_has_no_interval():
    bars = plot.policies(comparison(difference_low=None, difference_high=None)).containers[1]
    assert not bars.has_xerr


@pytest.mark.parametrize(("call", "says"), [
    (lambda: plot.policies({"baseline": "x", "summary": []}), "at least one, found none"), (lambda: plot.policies({}), "expected 'baseline'"),
    (lambda: plot.policies(comparison(), "nope"), "metric: expected one of jct_mean_s"), (lambda: plot.policies(comparison(), workload="q"), "workload: expected one of w"),
])
def test_policies_refuse(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_axes_given_are_the_axes_returned():
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1]
    assert plot.policies(comparison(), ax=ax) is ax
