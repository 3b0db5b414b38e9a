# SPDX-License-Identifier: Apache-2.0
"""Strips weights from ONNX graphs and counts parameters in what is left; needs onnx, never torch."""
import math

import onnx

KEPT_BYTES = 1024  # larger tensors lose their payload, whatever their type
FLOATS = {onnx.TensorProto.FLOAT: 4, onnx.TensorProto.FLOAT16: 2, onnx.TensorProto.DOUBLE: 8,
          onnx.TensorProto.BFLOAT16: 2}
INTS = {onnx.TensorProto.INT64: 8, onnx.TensorProto.INT32: 4, onnx.TensorProto.BOOL: 1, onnx.TensorProto.UINT8: 1,
        onnx.TensorProto.INT8: 1}
PAYLOADS = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")
RUNNING_STATISTICS = (3, 4)  # inputs of BatchNormalization that training does not optimise


def strip(tensor):
    """Drops the payload; name, type and dims stay."""
    for field in PAYLOADS:
        tensor.ClearField(field)


def size_bytes(tensor):
    return math.prod(tensor.dims) * {**FLOATS, **INTS}[tensor.data_type]


def strip_model(model):
    """Float initialisers and every tensor above KEPT_BYTES lose their payload; returns how many did."""
    count = 0
    for tensor in model.graph.initializer:
        if tensor.data_type in FLOATS or size_bytes(tensor) > KEPT_BYTES:
            strip(tensor)
            count += 1
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t") and size_bytes(attribute.t) > KEPT_BYTES:
                strip(attribute.t)
                count += 1
    return count


def shorten(graph):
    """Numbers the values between nodes, as older exporters did, and unnames constants: half the file's size."""
    if any(attribute.HasField("g") for node in graph.node for attribute in node.attribute):
        raise ValueError("a graph with subgraphs keeps its names")
    fixed = {t.name for t in graph.initializer} | {v.name for v in graph.input} | {v.name for v in graph.output}
    numbers = {"": ""}
    for node in graph.node:
        for name in node.output:
            if name and name not in fixed:
                numbers[name] = str(len(numbers))
        node.name = "" if node.op_type == "Constant" else node.name.lstrip("/")
        node.input[:] = [numbers.get(name, name) for name in node.input]
        node.output[:] = [numbers.get(name, name) for name in node.output]
    del graph.value_info[:]


def merge(graph):
    """Keeps one of several nodes that compute the same of the same: constants and shape arithmetic of every layer."""
    seen, instead, kept = {}, {}, []
    fixed = {value.name for value in graph.output}
    for node in graph.node:
        node.input[:] = [instead.get(name, name) for name in node.input]
        attributes = sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
        first = seen.setdefault((node.op_type, tuple(node.input), tuple(attributes)), node)
        if first is node or fixed.intersection(node.output):
            kept.append(onnx.NodeProto.FromString(node.SerializeToString()))
        else:
            instead.update(zip(node.output, first.output))
    del graph.node[:]
    graph.node.extend(kept)


def aliases(graph):
    """Output of an Identity node -> the initialiser behind it, however long the chain."""
    known = {tensor.name: tensor.name for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Identity" and node.input[0] in known:
            known[node.output[0]] = known[node.input[0]]
    return known


def parameters(graph):
    """Names and element counts of the trainable initialisers: floats, save running statistics."""
    behind = aliases(graph)
    running = {behind.get(node.input[i]) for node in graph.node if node.op_type == "BatchNormalization"
               for i in RUNNING_STATISTICS}
    return {t.name: math.prod(t.dims) for t in graph.initializer if t.data_type in FLOATS and t.name not in running}


def problems(graph):
    """What is wrong with a stripped graph, as sentences; empty when it keeps the zoo's rules."""
    found = []
    used = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    for tensor in graph.initializer:
        held = sum(len(getattr(tensor, field)) for field in PAYLOADS)
        if tensor.name not in used:
            found.append(f"initialiser {tensor.name} is used by no node")
        if tensor.data_type in FLOATS and held:
            found.append(f"float initialiser {tensor.name} still has a payload")
        if tensor.data_type not in FLOATS and size_bytes(tensor) <= KEPT_BYTES and not held and size_bytes(tensor):
            found.append(f"small integer initialiser {tensor.name} lost its values")
        if tensor.data_location != onnx.TensorProto.DEFAULT:
            found.append(f"initialiser {tensor.name} points to an external file")
    made = {t.name for t in graph.initializer} | {value.name for value in graph.input} | {""}
    for node in graph.node:
        found += [f"{node.op_type} {node.name} reads {name}, which nothing before it makes"
                  for name in node.input if name not in made]
        made.update(node.output)
    return found
