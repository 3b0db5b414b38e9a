# SPDX-License-Identifier: Apache-2.0
"""Pictures of what the library itself returns."""

import numpy as np
import pytest

horus = pytest.importorskip("horus")
try:
    horus.Demand
except ImportError:
    pytest.skip("the compiled module is not installed", allow_module_level=True)
from horus import plot  # noqa: E402

HOUR = 3_600_000_000


@pytest.fixture(scope="module")
def played():
    """A morning of 40 jobs on 4 GPUs under two policies, and what an observer saw of the second."""
    draw = np.random.default_rng(1)
    trace = horus.Trace(id=np.arange(40)[::-1].astype(np.uint64) + 5, profile=[("small", "large")[i % 2] for i in range(40)],
                        submit_us=draw.integers(0, HOUR, 40), duration_us=draw.integers(HOUR // 10, HOUR, 40))
    demand = {name: horus.Demand(gpu_util_pct=util, mem_mib=2_000, mem_bw_util_pct=util / 2, step_time_us=100_000, profile_id=i)
              for i, (name, util) in enumerate((("small", 20), ("large", 80)), 1)}
    device = horus.Device("v100-pcie-16gb")
    cluster = horus.Cluster([horus.Node(id=i, cpu_milli=64_000, mem_mib=262_144, devices=[device] * 2) for i in (1, 2)])
    play = (trace, demand, horus.Truth.from_model(demand), cluster)
    seen = []
    horus.simulate(*play, horus.Placer("horus"), observer=lambda *event: seen.append(event))
    results = horus.compare(*play, {name: horus.Placer(name) for name in ("exclusive", "horus")})
    return trace, results, seen, demand


def test_completion_times_of_results_are_those_of_their_metrics(played):
    trace, results, _, _ = played
    for name, (result,) in results.items():
        seconds = plot.jct.jct_seconds(result, name, trace)
        assert seconds.mean() == pytest.approx(result.metrics()["jct_us"]["mean"] / 1e6)
        twice = plot.jct.jct_seconds([result, result], name, [trace, trace])
        assert len(twice) == 80 and twice.mean() == pytest.approx(seconds.mean())
    assert [line.get_label().split()[0] for line in plot.jct_distribution(results, trace=trace).lines] == ["exclusive", "horus"]
    with pytest.raises(ValueError, match="expected the trace that was played"):
        plot.jct_distribution(results)
    with pytest.raises(ValueError, match="found one of other jobs"):
        plot.jct_distribution(results, trace=horus.Trace(profile=["small"], duration_us=[1]))


def test_what_an_observer_saw_is_drawn(played):
    _, results, seen, _ = played
    timeline = plot.from_events(seen)
    assert len(timeline.job_ids) == 40 and set(timeline.gpus) <= {(node, gpu) for node in "12" for gpu in (0, 1)}
    held = (timeline.spell_to_us - timeline.spell_from_us).sum()
    assert held == results["horus"][0].jobs["ran_us"].sum()
    for picture in (plot.gpu_timeline, plot.utilisation, plot.fragmentation):
        assert picture(seen).get_xlabel().startswith("time (")


def test_policies_are_compared_by_what_compare_returns(played):
    _, results, _, _ = played
    base, other = (results[name][0].metrics()["jct_us"]["mean"] for name in ("exclusive", "horus"))
    shown = [line.get_xdata()[0] for line in plot.policies(results).lines if len(line.get_xdata()) == 1]
    assert shown == pytest.approx([0, 100 * (other - base) / base])


def test_models_costs_and_gpus_are_drawn(played, resnet):
    demand = played[3]
    matrix = horus.InterferenceModel().matrix("v100-pcie-16gb", list(demand.values()))
    assert plot.slowdown_matrix(matrix, list(demand)).images[0].get_array().shape == (2, 2)
    cost = resnet.cost()
    ax = plot.step_memory({"resnet50": cost})
    assert max(bar.get_x() + bar.get_width() for bar in ax.patches) * 2**30 == pytest.approx(
        cost.weights_bytes + cost.gradients_bytes + cost.optimizer_bytes + cost.activations_bytes + cost.workspace_bytes)
    conv = {"op_type": "Conv", "forward_flops": 2e9, "bytes": 2e8, "time_us": 1000.0}
    gpu = next(gpu for gpu in horus.gpus() if gpu.name == "v100-sxm2-16gb")
    assert max(plot.roofline([conv], gpu).lines[0].get_ydata()) == pytest.approx(gpu.fp32_gflops)
