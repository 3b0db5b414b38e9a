# SPDX-License-Identifier: Apache-2.0
"""Graphs of torch modules; skipped where torch is not installed."""

import pickle

import pytest

torch = pytest.importorskip("torch")


def net(width=32):
    return torch.nn.Sequential(torch.nn.Linear(16, width), torch.nn.ReLU(), torch.nn.Linear(width, 4))


def test_a_module_becomes_a_graph(horus):
    graph = horus.Graph.from_torch(net(), torch.randn(8, 16))
    assert graph.name == "Sequential"
    assert graph.cost().parameters == 16 * 32 + 32 + 32 * 4 + 4
    assert pickle.loads(pickle.dumps(graph)) == graph


def test_weights_on_the_meta_device_are_never_there(horus):
    pytest.importorskip("onnxscript")
    with torch.device("meta"):
        module = net(2**21)  # 176 MB of weights
        inputs = torch.randn(8, 16)
    graph = horus.Graph.from_torch(module, inputs)
    assert graph.cost().parameters == 16 * 2**21 + 2**21 + 2**21 * 4 + 4
    assert graph.bytes_held < 100_000


def test_what_is_no_module_is_refused(horus):
    with pytest.raises(TypeError, match="module: expected torch.nn.Module"):
        horus.Graph.from_torch(3, torch.randn(1))
