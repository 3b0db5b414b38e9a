#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares inferred shapes with the computed results of the onnx package's node tests, whatever opset they have.

  python3 -m venv V && V/bin/pip install onnx
  cmake --build BUILD --target shape_dump && V/bin/python tests/oracle/node_shapes.py BUILD/tests/oracle/shape_dump

Each test's model loses the declared shapes of its outputs; small inputs that a rule may need the values of become
initialisers. Exits with 1 when a shape is known and wrong.
"""
import collections
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx.backend.test.case.node import collect_testcases

SMALL = 64  # elements of an input that becomes an initialiser


def prepare(model, inputs):
    graph = model.graph
    given = {tensor.name for tensor in graph.initializer}
    for info, array in zip(graph.input, inputs):
        small = isinstance(array, numpy.ndarray) and array.ndim <= 1 and array.size <= SMALL
        if small and array.dtype in (numpy.int64, numpy.int32, numpy.float32) and info.name not in given:
            graph.initializer.append(onnx.numpy_helper.from_array(array, info.name))
    given = {tensor.name for tensor in graph.initializer}
    rest = [info for info in graph.input if info.name not in given]
    del graph.input[:]
    graph.input.extend(rest)
    for info in graph.output:
        if info.type.HasField("tensor_type"):
            element = info.type.tensor_type.elem_type
            info.type.tensor_type.Clear()
            info.type.tensor_type.elem_type = element


def compare(lines, truth):
    """"right", "unknown" or "wrong" of one model."""
    verdict = "right"
    for line, shape in zip(lines, truth):
        word, *dims = line.split()
        if shape is None:
            continue
        dims = [int(d) for d in dims]
        if word == "known" and dims != shape:
            return "wrong"
        if word == "unknown":
            if len(dims) == len(shape) and any(d >= 0 and d != s for d, s in zip(dims, shape)):
                return "wrong"
            verdict = "unknown"
    return verdict


def main():
    truths, operators = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for case in collect_testcases(None):
            if case.model is None or not case.data_sets:
                continue
            inputs, outputs = case.data_sets[0]
            prepare(case.model, inputs)
            path = pathlib.Path(folder) / f"{case.name}.onnx"
            onnx.save(case.model, path)
            truths[str(path)] = [list(o.shape) if hasattr(o, "shape") else None for o in outputs]
            operators[str(path)] = "+".join(sorted({n.domain + n.op_type for n in case.model.graph.node}))
        text = subprocess.run([sys.argv[1], *truths], check=True, capture_output=True, text=True).stdout
    answers, current = {}, None
    for line in text.splitlines():
        if line.startswith("file "):
            current = answers.setdefault(line[5:], [])
        else:
            current.append(line)
    verdicts, left = collections.Counter(), collections.defaultdict(collections.Counter)
    for path, lines in answers.items():
        refused = bool(lines) and lines[0].startswith("error ")
        verdict = "refused" if refused else compare(lines, truths[path])
        verdicts[verdict] += 1
        if verdict != "right":
            left[verdict][operators[path]] += 1
    print(f"onnx {onnx.__version__}: " + ", ".join(f"{count} {name}" for name, count in sorted(verdicts.items())))
    for verdict, names in sorted(left.items()):
        print(f"{verdict}: " + ", ".join(f"{name} ({count})" for name, count in sorted(names.items())))
    return 1 if verdicts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
