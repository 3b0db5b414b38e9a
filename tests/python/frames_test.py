# SPDX-License-Identifier: Apache-2.0
"""Measured runs and pairs as frames, by the names of docs/measure.md."""

import re

import numpy as np
import pytest

from conftest import GRAPHS, ROOT, built

NETS = ["resnet18", "mobilenet_v2", "vgg16", "densenet121", "resnet50"]
RUNS = {"graph": [f"{net}.onnx" for net in NETS], "family": NETS, "gpu": ["t4"] * 5, "batch": [8, 16, float("nan"), 4.0, 2],
        "precision": ["amp", "", None, "fp32", "fp32"], "mem_mib": [1000.0, 2000, 3000, float("nan"), 1500],
        "gpu_util_max_pct": [50.0] * 5, "campaign": ["here"] * 5}
JOBS = {"job": [*NETS, "unused"], "graph": [f"{net}.onnx" for net in NETS] + ["none.onnx"], "family": [*NETS, "x"],
        "batch": [8] * 6}
PAIRS = {"gpu": ["v100-pcie-16gb"] * 10, "job_a": [a for i, a in enumerate(NETS) for _ in NETS[i + 1:]],
         "job_b": [b for i in range(5) for b in NETS[i + 1:]], "slowdown_a": np.linspace(1.2, 1.9, 10),
         "slowdown_b": np.linspace(1.9, 1.2, 10)}


def shapes(columns):
    """The same as a dict and, where pandas is installed, as a frame."""
    try:
        import pandas
    except ImportError:
        return [columns]
    return [columns, pandas.DataFrame(columns)]


def test_names_are_those_of_the_docs():
    import importlib
    frames = importlib.import_module("horus._frames")
    text = (ROOT / "docs/measure.md").read_text()
    told = set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| `"))))
    mine = {*frames.MEASURED, *frames._RUN, *frames._FOR_PEOPLE, "graph", "gpu", "family", "sharing_mode", "job", "job_a", "job_b",
            "slowdown_a", "slowdown_b"}
    assert mine <= told


def test_evaluate_takes_a_frame(horus, predictor):
    graphs = [horus.Graph.from_onnx(GRAPHS / name) for name in RUNS["graph"]]
    runs = [horus.RunSpec(batch=batch, precision=precision) for batch, precision in
            zip((8, 16, None, 4, 2), ("amp", "fp32", "fp32", "fp32", "fp32"))]
    wanted = predictor.evaluate(graphs, RUNS["gpu"], runs, mem_mib=RUNS["mem_mib"])
    for data in shapes(RUNS):
        found = predictor.evaluate(data, folder=GRAPHS)
        assert found == wanted and found["mem_mib"]["rows"] == 4
    assert predictor.evaluate({**RUNS, "graph": graphs})["mem_mib"] == wanted["mem_mib"]


def test_fit_takes_a_frame(horus):
    library = built("HORUS_TRAIN_LIBRARY", "lib/libhorus_train.so")
    if library is None:
        pytest.skip("libhorus_train.so is not built (HORUS_TRAIN_LIBRARY names it)")
    many = {name: list(values) * 4 for name, values in RUNS.items()}
    many["batch"] = [b for b in (2, 4, 8, 16) for _ in NETS]
    bundles = {horus.Predictor.fit(data, folder=GRAPHS, library=library).to_bytes() for data in shapes(many)}
    assert len(bundles) == 1


def test_pairs_and_their_jobs_are_frames(horus):
    models = [horus.InterferenceModel.fit(pairs, jobs=jobs, folder=GRAPHS, model="iasp")
              for pairs, jobs in zip(shapes(PAIRS), shapes(JOBS))]
    assert len({model.to_bytes() for model in models}) == 1
    told = horus.Predictor().predict_rows([horus.Graph.from_onnx(GRAPHS / f"{net}.onnx") for net in NETS],
                                          ["v100-pcie-16gb"] * 5, [horus.RunSpec(batch=8)] * 5)
    position = {net: at for at, net in enumerate(NETS)}
    by_hand = horus.InterferenceModel.fit(
        ["v100-pcie-16gb"], told.reshape(5, 1), NETS, device=np.zeros(10, np.uint32), model="iasp",
        **{name: [position[net] for net in PAIRS[name]] for name in ("job_a", "job_b")},
        slowdown_a=PAIRS["slowdown_a"], slowdown_b=PAIRS["slowdown_b"])
    assert by_hand.to_bytes() == models[0].to_bytes()


def without(columns, name):
    return {key: value for key, value in columns.items() if key != name}


@pytest.mark.parametrize("data, words", [
    (without(RUNS, "gpu"), ("column gpu", "graph")), (without(RUNS, "family"), ("column family",)),
    ({**RUNS, "nonsense": [1] * 5}, ("'nonsense'", "batch")), ({**RUNS, "feature.x": [1] * 5}, ("'feature.x'",)),
    (without(without(RUNS, "mem_mib"), "gpu_util_max_pct"), ("mem_mib", "none")),
    ({**RUNS, "gpu": ["t4"] * 4}, ("gpu", "5 rows", "4")), ({**RUNS, "mem_mib": ["x"] * 5}, ("row 0", "mem_mib", "number", "'x'")),
    ({**RUNS, "graph": [3] * 5}, ("row 0", "graph", "path", "3")), ({**RUNS, "graph": ["no.onnx"] * 5}, ("row 0", "graph", "no.onnx")),
    ({**RUNS, "batch": [1, 1, 1.5, 1, 1]}, ("row 2", "batch", "1.5")), ({**RUNS, "dims": ["seq"] * 5}, ("row 0", "dims", "NAME=SIZE")),
    ({**RUNS, "precision": ["fp7"] * 5}, ("row 0", "precision", "fp7", "amp")),
    ({**RUNS, "sharing_mode": ["mps"] * 5}, ("row 0", "sharing_mode", "exclusive", "mps")),
    ({**RUNS, "family": [""] * 5}, ("row 0", "family", "None")), ({**RUNS, "gpu": [None] * 5}, ("row 0", "gpu")),
])
def test_wrong_runs_are_named(horus, data, words):
    with pytest.raises(horus.InvalidArgument) as caught:
        horus.Predictor.fit(data, folder=GRAPHS, library="/nowhere.so")
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("pairs, jobs, words", [
    (without(PAIRS, "job_b"), JOBS, ("data", "job_b")), (PAIRS, without(JOBS, "graph"), ("jobs", "graph")),
    ({**PAIRS, "job_a": ["who"] * 10}, JOBS, ("row 0", "job_a", "'who'")), (PAIRS, {**JOBS, "job": ["x"] * 6}, ("row 1", "own")),
    ({**PAIRS, "sharing_mode": ["x"] * 10}, JOBS, ("sharing_mode", "mps", "x")), (PAIRS, {**JOBS, "note": [1]}, ("note", "6 rows")),
])
def test_wrong_pairs_are_named(horus, pairs, jobs, words):
    with pytest.raises(horus.Error) as caught:
        horus.InterferenceModel.fit(pairs, jobs=jobs, folder=GRAPHS, model="iasp")
    for word in words:
        assert word in str(caught.value)


def test_a_frame_comes_alone(horus, predictor):
    with pytest.raises(TypeError, match="frame alone"):
        predictor.evaluate(RUNS, ["t4"], folder=GRAPHS)
    with pytest.raises(TypeError, match="gpu_types"):
        predictor.evaluate([])
    with pytest.raises(TypeError, match="families"):
        horus.Predictor.fit([], [])
