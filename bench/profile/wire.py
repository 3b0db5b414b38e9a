# SPDX-License-Identifier: Apache-2.0
"""Takes the weights out of an ONNX file by its wire format alone, so that no ONNX package is needed.

Conventions of examples/models: every float initialiser and every other tensor above 1 KiB loses its payload and keeps
name, type and dims. Notes of the exporter (source lines, paths) go too.
"""

KEEP_BYTES = 1024
FLOATS = {1, 10, 11, 16}  # TensorProto.DataType: FLOAT, FLOAT16, DOUBLE, BFLOAT16
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
# Field numbers of onnx.proto.
MODEL_DOC, MODEL_GRAPH, MODEL_METADATA = 6, 7, 14
GRAPH_NODE, GRAPH_INITIALIZER, GRAPH_DOC, GRAPH_METADATA = 1, 5, 10, 16
NODE_ATTRIBUTE, NODE_DOC, NODE_METADATA = 5, 6, 9
ATTRIBUTE_TENSOR, ATTRIBUTE_GRAPH = 5, 6
TENSOR_TYPE, TENSOR_DOC = 2, 12
TENSOR_PAYLOAD = {4, 5, 6, 7, 9, 10, 11, 13, 14}  # data of each kind, external data and its location


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def encode(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def fields(data):
    """(number, wire type, whole field, payload) of each field of a message; the payload is bytes or a number."""
    data, at = memoryview(data), 0
    while at < len(data):
        start = at
        key, at = varint(data, at)
        kind = key & 7
        if kind == BYTES:
            size, at = varint(data, at)
            payload, at = data[at:at + size], at + size
        elif kind == VARINT:
            payload, at = varint(data, at)
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
            payload, at = data[at:at + size], at + size
        else:
            raise ValueError(f"byte {start}: wire type {kind} is none of ONNX")
        if at > len(data):
            raise ValueError(f"byte {start}: a field ends behind its message")
        yield key >> 3, kind, data[start:at], payload


def field(number, payload):
    return encode(number << 3 | BYTES) + encode(len(payload)) + bytes(payload)


def rewrite(data, change, drop=()):
    """The message with some fields changed: `change` maps a field number to a function of its payload."""
    out = []
    for number, _, whole, payload in fields(data):
        if number not in drop:
            out.append(field(number, change[number](payload)) if number in change else whole)
    return b"".join(out)


def light_tensor(data, floats):
    """The tensor without its payload, if it is large (or, where `floats` says so, of a float type)."""
    found = list(fields(data))
    kind = next((payload for number, _, _, payload in found if number == TENSOR_TYPE), 0)
    payload_bytes = sum(len(whole) for number, _, whole, _ in found if number in TENSOR_PAYLOAD)
    light = floats and kind in FLOATS or payload_bytes > KEEP_BYTES
    drop = (TENSOR_PAYLOAD if light else set()) | {TENSOR_DOC}
    return b"".join(whole for number, _, whole, _ in found if number not in drop)


def light_attribute(data):
    return rewrite(data, {ATTRIBUTE_TENSOR: lambda one: light_tensor(one, False), ATTRIBUTE_GRAPH: light_graph})


def light_node(data):
    return rewrite(data, {NODE_ATTRIBUTE: light_attribute}, {NODE_DOC, NODE_METADATA})


def light_graph(data):
    return rewrite(data, {GRAPH_NODE: light_node, GRAPH_INITIALIZER: lambda one: light_tensor(one, True)},
                   {GRAPH_DOC, GRAPH_METADATA})


def light_model(data, metadata):
    """The model without weights; `metadata` replaces what the exporter wrote."""
    model = rewrite(data, {MODEL_GRAPH: light_graph}, {MODEL_DOC, MODEL_METADATA})
    entries = (field(1, key.encode()) + field(2, text.encode()) for key, text in metadata.items())
    return model + b"".join(field(MODEL_METADATA, entry) for entry in entries)
