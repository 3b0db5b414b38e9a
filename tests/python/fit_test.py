# SPDX-License-Identifier: Apache-2.0
"""Training on one's own measurements, and how right a predictor is."""

import pickle

import numpy as np
import pytest

from conftest import GRAPHS, built

DEVICE = "v100-pcie-16gb"


def pairs(horus, jobs=12, seed=0):
    draw = np.random.default_rng(seed)
    util = draw.uniform(10, 95, jobs).astype(np.float32)
    demands = horus.demand_rows(jobs, gpu_util_pct=util, mem_bw_util_pct=util / 2, mem_mib=np.full(jobs, 2_000),
                                step_time_us=np.full(jobs, 100_000), profile_id=np.arange(1, jobs + 1, dtype=np.uint64))
    a, b = (part.ravel() for part in np.meshgrid(np.arange(jobs), np.arange(jobs)))
    slow = 1 + (util[a] + util[b]) / 200
    return dict(devices=[DEVICE], demands=demands.reshape(jobs, 1), families=[f"f{i}" for i in range(jobs)],
                device=np.zeros(len(a), np.uint32), job_a=a, job_b=b, slowdown_a=slow, slowdown_b=slow)


def test_a_model_learns_measured_pairs(horus):
    data = pairs(horus)
    model = horus.InterferenceModel.fit(model="iasp", **data)
    rows = data["demands"][:2].reshape(1, 2)
    truth = 1 + float(rows["gpu_util_pct"].sum()) / 200
    assert model.slowdown(DEVICE, rows).estimate[0, 0] == pytest.approx(truth, rel=0.3)
    again = pickle.loads(pickle.dumps(model))
    assert (again.slowdown(DEVICE, rows).estimate == model.slowdown(DEVICE, rows).estimate).all()
    assert horus.InterferenceModel.load(model.to_bytes(), "iasp").name == model.name


@pytest.mark.parametrize("change, words", [
    (dict(job_a=np.zeros(3, np.uint32)), ("job_a", "rows")), (dict(families=["x"]), ("demands", "jobs x")),
    (dict(model="nonsense"), ("nonsense",)), (dict(slowdown_a=["x"] * 144), ("slowdown_a", "float64")),
    (dict(device=np.full(144, 9)), ("device",)),
])
def test_wrong_pairs_are_named(horus, change, words):
    with pytest.raises((horus.Error, TypeError)) as caught:
        horus.InterferenceModel.fit(**{**pairs(horus), **change})
    for word in words:
        assert word in str(caught.value)


def measured(horus, predictor):
    graphs, runs, families = [], [], []
    for name in ("resnet50", "mobilenet_v2", "vgg16", "densenet121", "resnet18"):
        graph = horus.Graph.from_onnx(GRAPHS / f"{name}.onnx")
        for batch in (8, 16, 32):
            graphs.append(graph)
            runs.append(horus.RunSpec(batch=batch))
            families.append(name)
    told = predictor.predict_rows(graphs, ["t4"] * len(graphs), runs)
    return graphs, ["t4"] * len(graphs), families, runs, told


def test_evaluation_says_how_right_it_is(horus, predictor):
    graphs, types, _, runs, told = measured(horus, predictor)
    found = predictor.evaluate(graphs, types, runs, mem_mib=told["mem_mib"].astype(float), step_time_us=[np.nan] * len(graphs))
    assert found["mem_mib"] == {"rows": len(graphs), "mean_abs_error": 0, "rmsle": 0, "median_ratio": 1, "covered": 1}
    assert found["step_time_us"] == {"rows": 0}
    with pytest.raises(TypeError, match="nonsense"):
        predictor.evaluate(graphs, types, runs, nonsense=[1.0] * len(graphs))


def test_a_predictor_learns_where_the_training_library_is(horus, predictor):
    graphs, types, families, runs, told = measured(horus, predictor)
    columns = {"mem_mib": told["mem_mib"] * 2.0, "step_time_us": told["step_time_us"] * 1.0}
    with pytest.raises(horus.FileError, match="libhorus_train"):
        horus.Predictor.fit(graphs, types, families, runs, library="/no/libhorus_train.so", **columns)
    with pytest.raises(horus.InvalidArgument, match="mem_mib: expected 15 rows, found 1"):
        horus.Predictor.fit(graphs, types, families, runs, mem_mib=[1.0])
    found = built("HORUS_TRAIN_LIBRARY", "lib/libhorus_train.so")
    if found is None:
        pytest.skip("no build of libhorus_train.so (HORUS_TRAIN_LIBRARY names one)")
    learned = horus.Predictor.fit(graphs, types, families, runs, library=found, rounds=10, **columns)
    before, after = (model.evaluate(graphs, types, runs, mem_mib=columns["mem_mib"])["mem_mib"] for model in (predictor, learned))
    assert after["rmsle"] < before["rmsle"] / 2
    chained = horus.Predictor.fit(graphs, types, families, runs, library=found, rounds=10, base=learned,
                                  step_time_us=columns["step_time_us"])
    kept = chained.predict_rows(graphs, types, runs)["mem_mib"]
    assert (kept == learned.predict_rows(graphs, types, runs)["mem_mib"]).all() and (kept != told["mem_mib"]).any()
