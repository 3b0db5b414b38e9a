# SPDX-License-Identifier: Apache-2.0
"""Graphs: every way to make one, what they cost, what pickles."""

import json
import math
import pickle

import numpy as np
import pytest

from conftest import GRAPHS


def test_path_bytes_and_model_give_equal_graphs(horus):
    path = GRAPHS / "mobilenet_v2.onnx"
    graph = horus.Graph.from_onnx(path)
    assert graph == horus.Graph.from_onnx(str(path)) == horus.Graph.from_onnx(path.read_bytes())
    assert graph == horus.Graph.from_onnx(bytearray(path.read_bytes())) == horus.Graph.from_onnx(memoryview(path.read_bytes()))
    onnx = pytest.importorskip("onnx")
    assert graph == horus.Graph.from_onnx(onnx.load_from_string(path.read_bytes()))


def test_configs_are_graphs(horus, tmp_path):
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
              "intermediate_size": 128, "vocab_size": 256, "max_position_embeddings": 512}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    graph = horus.Graph.from_config(config)
    assert graph == horus.Graph.from_config(path) == pickle.loads(pickle.dumps(graph))
    assert graph.dims == ("batch", "seq", "past")
    half = pickle.loads(pickle.dumps(horus.Graph.from_config(path, tensor_parallel=2, weights="fp8")))
    run = horus.RunSpec(mode="inference", precision="bf16", dims={"seq": 1, "past": 64})
    assert 2 * half.cost(run).parameters == graph.cost(run).parameters + 5 * 64
    assert horus.Graph.from_config("llama-3.1-8b").cost(run).parameters == 8_030_261_248
    for asked in (graph.cost, graph.features, lambda run: horus.Predictor().predict(graph, "t4", run)):
        with pytest.raises(horus.InvalidArgument, match="training=True"):
            asked(horus.RunSpec(mode="training", precision="bf16", dims={"seq": 8}))
    trained = horus.Graph.from_config(config, training=True).cost(horus.RunSpec(precision="bf16", dims={"seq": 8}))
    assert trained.gradients_bytes == 2 * trained.parameters
    with pytest.raises(horus.InvalidArgument, match="hidden_size: expected an integer"):
        horus.Graph.from_config({**config, "hidden_size": 0})
    with pytest.raises(horus.NotFound, match="llama-3.1-8b"):
        horus.Graph.from_config("llama-3.1-9b")
    with pytest.raises(horus.NotFound, match="did you mean 'llama-3.1-8b'"):
        horus.Graph.from_config("meta-llama/Llama-3.1-8B-Instruct")
    with pytest.raises(FileNotFoundError):
        horus.Graph.from_config(tmp_path / "none.json")


def test_cost_adds_up(horus, resnet):
    cost = resnet.cost(horus.RunSpec(batch=64))
    assert cost.parameters == 25_557_032
    assert cost.training_flops > 2.9 * cost.forward_flops
    assert cost.peak_bytes == (cost.weights_bytes + cost.gradients_bytes + cost.optimizer_bytes + cost.activations_bytes
                               + cost.workspace_bytes)
    assert resnet.cost(horus.RunSpec(batch=64, mode="inference")).gradients_bytes == 0


def test_features_have_the_schema(horus, resnet):
    row = resnet.features(horus.RunSpec(batch=8))
    schema = horus.feature_schema()
    assert len(row) == len(schema) == row.values.size
    assert row.values.dtype == np.float32
    assert row[schema[0].name] == pytest.approx(row.values[0], nan_ok=True)
    assert np.array_equal(np.asarray(row), row.values, equal_nan=True)
    assert all(column.name and column.definition for column in schema)
    with pytest.raises(KeyError):
        row["no such feature"]


def test_every_graph_of_the_zoo_pickles_without_weights(horus):
    for path in sorted(GRAPHS.glob("*.onnx")):
        graph = horus.Graph.from_onnx(path)
        again = pickle.loads(pickle.dumps(graph))
        assert again == graph and again.name == path.name
        assert repr(graph) == repr(again)


def test_large_weights_are_left_out_of_the_pickle_and_change_nothing(horus):
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    weight = onnx.numpy_helper.from_array(np.ones((256, 512), np.float32), "w")
    shape = onnx.numpy_helper.from_array(np.array([0, -1], np.int64), "s")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Reshape", ["y", "s"], ["z"])], "g",
        [helper.make_tensor_value_info("x", 1, ["n", 256])], [helper.make_tensor_value_info("z", 1, ["n", 512])],
        [weight, shape])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    read = horus.Graph.from_onnx(model)
    pickled = pickle.dumps(read)
    assert len(pickled) < 4_000 < len(model.SerializeToString())
    again = pickle.loads(pickled)
    run = horus.RunSpec(dims={"n": 32})
    assert again == read and again.cost(run) == read.cost(run)
    assert read.cost(run).parameters == 256 * 512 and read.dims == ("n",)


@pytest.mark.parametrize("model, kind", [(3, TypeError), (None, TypeError), (b"", None), (b"no graph", None),
                                         ("/no/such.onnx", None), ("a\0b", None), ([], TypeError)])
def test_what_is_no_graph_is_refused(horus, model, kind):
    with pytest.raises(kind or horus.Error) as caught:
        horus.Graph.from_onnx(model)
    assert str(caught.value)


def test_a_missing_file_is_an_os_error_too(horus):
    with pytest.raises(OSError) as caught:
        horus.Graph.from_onnx("/no/such.onnx")
    assert isinstance(caught.value, horus.FileError) and caught.value.status_name == "IO"


def test_an_unknown_dimension_is_named(horus, resnet):
    with pytest.raises(horus.InvalidArgument, match="nonsense"):
        resnet.cost(horus.RunSpec(dims={"nonsense": 3}))


def test_graphs_are_made_by_their_functions(horus):
    with pytest.raises(TypeError, match="from_onnx"):
        horus.Graph()


def test_tables_for_notebooks(horus, resnet):
    assert "<table>" in resnet._repr_html_() and "resnet50" in resnet._repr_html_()
    assert "<table>" in resnet.features()._repr_html_() and "<table>" in resnet.cost()._repr_html_()
    assert math.isfinite(resnet.bytes_held)
