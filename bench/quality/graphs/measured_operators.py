# SPDX-License-Identifier: Apache-2.0
"""Graphs of single operators for measured_others.py. All sizes are open, so weights are inputs: no initialiser has an
open size, and a forward pass reads them alike."""

OPSET = 20  # the first with Gelu
PAIR = (("x", ("batch", "width")), ("y", ("batch", "width")))
ONE = PAIR[:1]
SCALAR = 2.0  # that the operators ending in u take

# name: operator of ONNX, inputs with their sizes, attributes, sizes of the result
OPERATORS = {
    **{f"op_{name}": (kind, PAIR, {}, ("batch", "width"))
       for name, kind in (("add", "Add"), ("mul", "Mul"), ("div", "Div"), ("pow", "Pow"))},
    **{f"op_{name}u": (kind, ONE, dict(scalar=SCALAR), ("batch", "width"))
       for name, kind in (("add", "Add"), ("mul", "Mul"), ("div", "Div"), ("pow", "Pow"))},
    **{f"op_{name}": (kind, ONE, {}, ("batch", "width"))
       for name, kind in (("relu", "Relu"), ("gelu", "Gelu"), ("tanh", "Tanh"))},
    "op_softmax": ("Softmax", ONE, dict(axis=-1), ("batch", "width")),
    "op_ln": ("LayerNormalization", ONE + (("scale", ("width",)), ("bias", ("width",))), dict(axis=-1),
              ("batch", "width")),
    "op_bmm": ("MatMul", (("x", ("batch", "rows", "inner")), ("y", ("batch", "inner", "columns"))), {},
               ("batch", "rows", "columns")),
    "op_linear": ("Gemm", (("x", ("batch", "inner")), ("weight", ("columns", "inner")), ("bias", ("columns",))),
                  dict(transB=1), ("batch", "columns")),
    "op_conv3x3": ("Conv", (("x", ("batch", "channels", "height", "width")), ("weight", ("filters", "channels", 3, 3))),
                   dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]),
                   ("batch", "filters", "height", "width")),
}


def build(name):
    from onnx import TensorProto, helper
    kind, inputs, attributes, result = OPERATORS[name]
    attributes = dict(attributes)
    scalar = attributes.pop("scalar", None)
    named = [one for one, _ in inputs]
    constants = []
    if scalar is not None:
        constants.append(helper.make_tensor("scalar", TensorProto.FLOAT, [], [scalar]))
        named.append("scalar")
    value = lambda one, dims: helper.make_tensor_value_info(one, TensorProto.FLOAT, dims)
    graph = helper.make_graph([helper.make_node(kind, named, ["result"], **attributes)], name,
                              [value(*one) for one in inputs], [value("result", result)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
