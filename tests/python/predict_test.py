# SPDX-License-Identifier: Apache-2.0
"""Predictors and observations."""

import pickle
import warnings

import numpy as np
import pytest
from conftest import GRAPHS


def test_predictions_come_by_type(horus, predictor, resnet):
    run = horus.RunSpec(batch=32)
    both = predictor.predict(resnet, ["a100-40gb", "t4"], run)
    assert list(both) == ["a100-40gb", "t4"]
    assert both["t4"] == predictor.predict(resnet, "t4", run)
    assert both["t4"].step_time_us > both["a100-40gb"].step_time_us > 0
    assert both["t4"].mem_mib_upper >= both["t4"].mem_mib > 0
    assert both["t4"].profile_id == both["a100-40gb"].profile_id != 0
    assert both["t4"].outside in (True, False) and not both["t4"].given


def test_a_step_that_is_beyond_a_types_memory_is_warned_of(horus, predictor, resnet):
    with pytest.warns(RuntimeWarning, match=r"more memory than the GPU has: t4 \([0-9,]+ of 15,360 MiB\)$"):
        found = predictor.predict(resnet, ["t4"], horus.RunSpec(batch=4_096))["t4"]
    assert found.too_large and horus.DemandFlag.TOO_LARGE in found.flags
    run = horus.RunSpec(optimizer="momentum", batch=256)
    with pytest.warns(RuntimeWarning, match=r"more memory than the GPU has: t4 \([0-9,]+ of 15,360 MiB\)$"):
        found = predictor.predict(resnet, ["t4", "a100-80gb"], run)["t4"]
    assert not found.too_large and found.mem_mib > horus.gpus()["t4"].mem_mib
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predictor.predict(resnet, "a100-80gb", run)


def test_hints_speak_python(horus, predictor):
    graph = horus.Graph.from_onnx(GRAPHS / "bert_base.onnx")
    with pytest.raises(horus.InvalidArgument) as caught:
        predictor.predict(graph, "t4")
    assert "RunSpec(dims={" in str(caught.value) and "--dim" not in str(caught.value)
    with pytest.raises(horus.CorruptError, match="a text file"):
        horus.Predictor.load(b"graph,batch\nresnet.onnx,8\n")
    with pytest.raises(horus.CorruptError, match="a text file"):
        horus.Graph.from_onnx(b"graph,batch\nresnet.onnx,8\n")


def test_rows_are_the_single_predictions(horus, predictor, resnet):
    runs = [horus.RunSpec(batch=b) for b in (8, 16, 32)]
    types = ["t4", "a100-40gb", "t4"]
    rows = predictor.predict_rows([resnet] * 3, types, runs)
    expected = horus.demand_rows([predictor.predict(resnet, t, r) for t, r in zip(types, runs)])
    assert rows.dtype == horus.demand_dtype and (rows == expected).all()
    told = []
    predictor.predict_rows([resnet] * 50, ["t4"] * 50, progress=told.append)
    assert all(0 <= share <= 1 for share in told)


@pytest.mark.parametrize("graphs, types, runs, word", [(1, 2, None, "graphs"), (2, 2, 1, "runs")])
def test_columns_of_other_lengths_are_refused(horus, predictor, resnet, graphs, types, runs, word):
    with pytest.raises(horus.InvalidArgument, match=f"{word}: expected 2 rows"):
        predictor.predict_rows([resnet] * graphs, ["t4"] * types, runs and [horus.RunSpec()] * runs)


def test_the_largest_batch_fits_and_the_next_does_not(horus, predictor, resnet):
    found, = predictor.solve(resnet, ["t4"], horus.RunSpec(optimizer="momentum"))
    memory = horus.gpus()["t4"].mem_mib
    upper = predictor.predict(resnet, "t4", horus.RunSpec(optimizer="momentum", batch=found.largest)).mem_mib_upper
    assert found.reason == "memory" and found.next == found.largest + 1 and upper == found.mem_mib_upper <= memory
    less, = predictor.solve(resnet, ["t4"], horus.RunSpec(optimizer="momentum"), resident_mib=[8_000])
    assert less.largest < found.largest


def test_one_type_is_solved_by_its_name(horus, predictor, resnet):
    found, = predictor.solve(resnet, ["t4"])
    assert predictor.solve(resnet, "t4") == found


def test_adapters_freeze_all_else(horus, predictor):
    graph = horus.Graph.from_config("llama-3.1-8b", lora_rank=16, training=True)
    run = horus.RunSpec(precision="bf16", batch=1, dims={"seq": 512}, optimizer="adamw")
    demand = predictor.predict(graph, "h100-sxm", run)
    assert demand.mem_mib < 32 * 1024
    assert demand == predictor.predict(graph, "h100-sxm", run.replace(frozen=["model.", "lm_head."]))


def test_solving_stops_when_told(horus, predictor, resnet):
    class Stop(Exception):
        pass

    def stop(share):
        raise Stop

    with pytest.raises(Stop):  # asked some tens of times a second: a call that takes longer than that
        predictor.solve(resnet, ["a100-80gb"] * 8_000, resident_mib=list(range(0, 80_000, 10)), progress=stop)


def test_bundles_round_trip(horus, predictor, resnet):
    again = horus.Predictor.load(predictor.to_bytes())
    assert again.predict(resnet, "t4") == predictor.predict(resnet, "t4") == pickle.loads(
        pickle.dumps(predictor)).predict(resnet, "t4")
    assert predictor.quality()["mem_mib"]["rows"] > 100
    with pytest.raises(horus.CorruptError):
        horus.Predictor.load(b"no bundle")
    with pytest.raises(TypeError):
        horus.Predictor.load(3)


def test_what_was_observed_is_answered(horus, predictor, resnet):
    before = predictor.predict(resnet, "t4")
    seen = horus.Observations()
    for _ in range(20):
        seen.add_demand(before.profile_id, "t4", gpu_util_pct=12.5, mem_mib=3_000)
    after = predictor.observe(seen)
    assert after.epoch == 20 and predictor.epoch == 0
    measured = after.predict(resnet, "t4")
    assert measured.measured and measured.gpu_util_pct == pytest.approx(12.5, rel=0.2) and not before.measured
    assert pickle.loads(pickle.dumps(seen)).to_bytes() == seen.to_bytes()
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(after)


@pytest.mark.parametrize("change", [{"profile_id": -1}, {"gpu_type": "nonsense"}, {"gpu_util_pct": 150.0},
                                    {"gpu_util_pct": "x"}, {"profile_id": 0}])
def test_wrong_observations_leave_no_trace(horus, change):
    seen = horus.Observations()
    before = seen.to_bytes()
    fields = {"profile_id": 1, "gpu_type": "t4", "gpu_util_pct": 10.0, **change}
    with pytest.raises((horus.Error, TypeError)):
        seen.add_demand(**fields)
    assert seen.to_bytes() == before


def test_unknown_types_are_named(horus, predictor, resnet):
    with pytest.raises(horus.NotFound, match="t44"):
        predictor.predict(resnet, "t44")
    with pytest.raises(TypeError, match="graph: expected Graph"):
        predictor.predict("x", "t4")
    with pytest.raises(TypeError, match=r"gpu_types\[1\]: expected str"):
        predictor.predict(resnet, ["t4", 3])
    with pytest.raises(TypeError, match="run: expected RunSpec"):
        predictor.predict(resnet, "t4", {"batch": 3})


def test_tables(horus, predictor):
    assert "mem_mib" in predictor._repr_html_() and "quantities" in repr(predictor)
    assert np.dtype(horus.demand_dtype).itemsize == 112 or horus.demand_dtype.itemsize % 8 == 0


def test_a_language_model_is_served(horus, predictor):
    graph = horus.Graph.from_config("llama-3.1-8b")
    chat = {"requests_per_s": 3, "tokens_in": 1024, "tokens_out": 256, "token_ms": 50}
    both = predictor.serve(graph, ["h100-sxm", "t4"], **chat)
    assert both["h100-sxm"] == predictor.serve(graph, "h100-sxm", **chat)
    assert (both["h100-sxm"].verdict, both["t4"].verdict) == ("served", "no-room")
    one = both["h100-sxm"]
    assert one.token_us <= one.token_us_upper <= 50_000 and one.tokens_per_s == 3 * 256
    assert one.demand.slowdown_bound >= 1 and 0 < one.demand.duty < 1
    alone = {**chat, "requests_per_s": 0, "users": 8}
    seen = horus.ServiceRun("h100-sxm", 8, token_ms=2 * predictor.serve(graph, "h100-sxm", **alone).token_us / 1e3)
    assert predictor.serve(graph, "h100-sxm", **alone, measured=[seen]).token_us == pytest.approx(1e3 * seen.token_ms)
    with pytest.raises(horus.NotFound, match="h111"):
        predictor.serve(graph, "h100-sxm", **alone, measured=[horus.ServiceRun("h111", 8, token_ms=9)])
    eager = horus.RunSpec(mode="inference", precision="bf16")
    with pytest.raises(horus.InvalidArgument, match="expected an engine"):
        predictor.serve(graph, "h100-sxm", run=eager, **chat)
    with pytest.raises(horus.InvalidArgument, match="either requests_per_s or"):
        predictor.serve(graph, "h100-sxm", tokens_in=5, tokens_out=5)


@pytest.mark.parametrize("unknown, load, value, step", [
    ("load", {"token_ms": 30}, "requests_per_s", 0.01), ("load", {"users": 1, "token_ms": 30}, "users", 1),
    ("context", {"requests_per_s": 1}, "longest", 1)])
def test_the_most_that_is_served_is_served_and_the_next_is_not(horus, predictor, unknown, load, value, step):
    graph = horus.Graph.from_config("qwen2.5-0.5b")
    load = {"tokens_in": 1024, "tokens_out": 256, **load}
    most = predictor.solve_service(graph, "l40s", unknown, **load)
    assert predictor.serve(graph, "l40s", **{**load, value: most}).verdict == "served"
    if unknown == "context":
        assert most == 32_768  # all that the model was made for
    else:
        assert predictor.serve(graph, "l40s", **{**load, value: most + step}).verdict != "served"
    assert predictor.solve_service(horus.Graph.from_config("llama-3.1-70b"), "t4", unknown, **load) == 0


def test_a_model_that_answers_in_one_step_is_served_in_batches(horus, predictor, resnet):
    one, many = (predictor.serve(resnet, "t4", requests_per_s=5, run=horus.RunSpec(mode="inference", batch=batch))
                 for batch in (1, 16))
    assert many.most_requests_per_s > one.most_requests_per_s and one.token_us == 0 and one.verdict == "served"
    with pytest.raises(horus.InvalidArgument, match="unknown: expected"):
        predictor.solve_service(resnet, "t4", "lod")
    with pytest.raises(horus.InvalidArgument, match="any number may wait"):
        predictor.solve_service(resnet, "t4", users=1)
