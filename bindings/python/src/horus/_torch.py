# SPDX-License-Identifier: Apache-2.0
"""Torch modules as ONNX bytes without weights. The modern exporter (dynamo) where torch has it: it traces with fake tensors,
so a module on the meta device is exported without its weights ever being there."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import io
import warnings
from typing import Any


def exported(module: Any, example_inputs: Any, export: dict[str, Any]) -> bytes:
    """The ONNX bytes of a module; weights have shapes alone."""
    torch = importlib.import_module("torch")
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module: expected torch.nn.Module, found {module!r:.80} ({type(module).__name__})")
    inputs = example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)
    modern = "dynamo" in inspect.signature(torch.onnx.export).parameters and _has("onnxscript")
    if export.pop("dynamo", modern):
        return _modern(torch, module, inputs, export)
    return _classic(torch, module, inputs, export)


def _has(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _modern(torch: Any, module: Any, inputs: tuple[Any, ...], export: dict[str, Any]) -> bytes:
    with warnings.catch_warnings():  # training mode is meant, and the exporter's own deprecations are not ours
        warnings.simplefilter("ignore")
        program = torch.onnx.export(module, inputs, None, dynamo=True, verbose=False, optimize=False, **export)
    ir = importlib.import_module("onnx_ir")
    for name, value in program.model.graph.initializers.items():
        tensor = value.const_value
        if tensor is not None and (tensor.dtype.is_floating_point() or tensor.nbytes > _KEPT_BYTES):
            # A file that is not there: readers of shapes never open it.
            value.const_value = ir.ExternalTensor("weights", 0, tensor.nbytes, tensor.dtype, shape=tensor.shape, name=name)
    return bytes(ir.to_proto(program.model).SerializeToString())


_KEPT_BYTES = 1024  # smaller tensors of integers may be shapes


def _classic(torch: Any, module: Any, inputs: tuple[Any, ...], export: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    how = {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False, **export}
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        how["dynamo"] = False
    meta = any(tensor.is_meta for tensor in (*module.parameters(), *module.buffers()))
    if meta:
        raise ValueError("module: its weights are on the meta device, which this torch's exporter cannot trace; it needs "
                         "torch 2.5 or later with onnxscript")
    torch.onnx.export(module, inputs, buffer, **how)
    return buffer.getvalue()
