# SPDX-License-Identifier: Apache-2.0
"""The weight-free ONNX graph of a user's net, exported on the CPU by whichever exporter this PyTorch has."""
import inspect
import io
import os
import tempfile

import torch

import training
import wire
import zoo

OPSET = 17
DYNAMO_OPSET = 18  # the least that the exporter on torch.export writes


def batch_axes(order):
    """The axes of each input that grow with the batch: {index: {axis: "batch"}}."""
    shapes = []
    for batch in (order["batch"], 2 * order["batch"]):
        _, inputs, _ = training.net_of({**order, "batch": batch})
        shapes.append([tuple(one.shape) for one in inputs()])
    return {index: {axis: "batch" for axis, (a, b) in enumerate(zip(*pair)) if a != b}
            for index, pair in enumerate(zip(*shapes))}


def prepared(order):
    """Model and inputs on the CPU. Evaluation mode without fusing: the graph is the one that trains."""
    build, inputs, _ = training.net_of(order)
    model = build().float().eval()
    for module in model.modules():  # its fused inference path has no ONNX form
        if isinstance(module, torch.nn.MultiheadAttention):
            module.train(True)
            module.dropout = 0.0
    return model, inputs()


def by_script(model, inputs, axes):
    """The exporter on TorchScript: PyTorch 1.13 and as long as it is there."""
    model.training = True  # of the root alone, with "preserve": normalisations stay nodes of their own
    names = [f"input_{index}" for index in range(len(inputs))]
    options = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    buffer = io.BytesIO()
    torch.onnx.export(model, inputs, buffer, opset_version=OPSET, training=torch.onnx.TrainingMode.PRESERVE,
                      do_constant_folding=True, input_names=names,
                      dynamic_axes={names[index]: found for index, found in axes.items() if found}, **options)
    return buffer.getvalue()


def by_dynamo(model, inputs, axes):
    """The exporter on torch.export; it needs onnxscript."""
    batch = torch.export.Dim("batch")
    shapes = tuple({axis: batch for axis in axes[index]} or None for index in range(len(inputs)))
    model.eval()
    # Its optimiser would fold normalisations into convolutions: the graph would not be the one that trains.
    options = {"optimize": False} if "optimize" in inspect.signature(torch.onnx.export).parameters else {}
    program = torch.onnx.export(model, inputs, dynamo=True, opset_version=DYNAMO_OPSET, dynamic_shapes=shapes, **options)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        program.save(path, external_data=True)  # weights lie beside the file: no limit of 2 GiB
        with open(path, "rb") as file:
            return file.read()


EXPORTERS = {"torchscript": by_script, "dynamo": by_dynamo}


def export(order, path, exporters=EXPORTERS):
    """Writes the graph; tries one exporter after the other. {"exporter", "bytes"}."""
    axes, reasons = batch_axes(order), []
    for name, exporter in exporters.items():
        model, inputs = prepared(order)
        try:
            data = exporter(model, inputs, axes)
        except Exception as error:  # exporters raise whatever the net brings out in them
            reasons.append(f"{name}: {type(error).__name__}: {str(error).strip().splitlines()[0][:200] if str(error).strip() else ''}")
            continue
        light = wire.light_model(data, {"horus.net": zoo.plain_name(order["net"]), "horus.family": order["family"],
                                        "horus.source": "none published", "horus.weights": "stripped"})
        partial = path + ".part"
        with open(partial, "wb") as file:
            file.write(light)
        os.replace(partial, path)
        return {"exporter": name, "bytes": len(light)}
    raise RuntimeError("no exporter took the net: " + "; ".join(reasons))
