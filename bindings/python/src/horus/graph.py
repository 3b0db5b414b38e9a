# SPDX-License-Identifier: Apache-2.0
"""Graphs: what a job computes, read without its weights, and what one step of it costs."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core, _table
from ._args import instance, text
from ._core import RunSpec

__all__ = ["FeatureColumn", "FeatureRow", "Graph", "RunSpec", "StepCost", "feature_schema"]

_DEFAULT_RUN = RunSpec()


@dataclass(frozen=True)
class StepCost:
    """What one step costs. FLOPs count a multiply-add as 2. The five `_bytes` fields from weights to workspace sum to the
    memory peak without the context."""

    parameters: int
    forward_flops: float
    forward_flops_other: float
    training_flops: float
    horus_flops: float
    step_bytes: float
    kernels: int
    operators: int
    operators_unknown: int
    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    workspace_bytes: int
    horus_memory_bytes: int

    @property
    def peak_bytes(self) -> int:
        """Memory peak of a step without the CUDA context."""
        return (self.weights_bytes + self.gradients_bytes + self.optimizer_bytes + self.activations_bytes
                + self.workspace_bytes)

    def _repr_html_(self) -> str:
        return _table.pairs_to_html("Cost of one step", vars(self))


@dataclass(frozen=True)
class FeatureColumn:
    """A column of the feature row."""

    name: str
    unit: str
    definition: str

    def _repr_html_(self) -> str:
        return _table.pairs_to_html("Column of the feature row", vars(self))


def feature_schema() -> list[FeatureColumn]:
    """The columns of a feature row, in order."""
    return [FeatureColumn(*column) for column in _core.feature_schema()]


class FeatureRow:
    """The features of a graph and run: float32 values in the order of `feature_schema()`; NaN = missing."""

    __slots__ = ("names", "values")

    def __init__(self, names: tuple[str, ...], values: npt.NDArray[np.float32]) -> None:
        self.names = names
        self.values = values

    def __getitem__(self, name: str) -> float:
        try:
            return float(self.values[self.names.index(name)])
        except ValueError:
            raise KeyError(name) from None

    def __len__(self) -> int:
        return len(self.names)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self.values, dtype) if not copy else np.array(self.values, dtype)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, FeatureRow) and self.names == other.names
                and np.array_equal(self.values, other.values, equal_nan=True))

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, float]:
        """Values by name."""
        return dict(zip(self.names, map(float, self.values)))

    def to_series(self) -> Any:
        """A pandas Series."""
        frame = _table.frame({"value": self.values})
        frame.index = list(self.names)
        return frame["value"]

    def __repr__(self) -> str:
        return f"<horus.FeatureRow of {len(self)} columns>"

    def _repr_html_(self) -> str:
        return _table.to_html(repr(self), {"feature": list(self.names), "value": list(self.values)})


class Graph:
    """A computation graph. Immutable: share freely between threads. Make one by `from_onnx`, `from_torch`
    or `from_config`."""

    __slots__ = ("_handle", "_info", "_name", "_options", "_source")

    _handle: _core.GraphHandle
    _source: bytes
    _name: str
    _info: dict[str, Any]
    _options: tuple[Any, ...] | None  # of a config

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError("a Graph is made by Graph.from_onnx(...), Graph.from_torch(...) or Graph.from_config(...)")

    @classmethod
    def from_onnx(cls, model: str | os.PathLike[str] | bytes | bytearray | memoryview | Any) -> Graph:
        """Reads a file, the bytes of one, or an `onnx.ModelProto`: IR 3 to 11, opset 7 and later. Weights are skipped.

        Raises FileError, CorruptError, LimitError, InvalidArgument, Unsupported.
        """
        if isinstance(model, (str, os.PathLike)):
            path = text(os.fsdecode(os.fspath(model)), "model")
            return cls._made(_core.GraphHandle.from_file(path), _lean_file(path), os.path.basename(path))
        if isinstance(model, (bytes, bytearray, memoryview)):
            return cls._from_bytes(model, "")
        if hasattr(model, "SerializeToString") and hasattr(model, "graph"):
            return cls._from_bytes(model.SerializeToString(), str(getattr(model.graph, "name", "")))
        raise TypeError(f"model: expected a path, bytes or onnx.ModelProto, found {model!r:.80} ({type(model).__name__})")

    @classmethod
    def from_torch(cls, module: Any, example_inputs: Any, **export: Any) -> Graph:
        """Exports a torch module by `torch.onnx.export` and reads the graph. `example_inputs`: as the exporter takes
        them; `export`: further arguments for it, e.g. dynamic_axes. See docs/python.md for large models."""
        from ._torch import exported

        return cls._from_bytes(exported(module, example_inputs, export), type(module).__name__)

    @classmethod
    def from_config(cls, config: str | os.PathLike[str] | Mapping[str, Any], *, training: bool = False,
                    tensor_parallel: int = 1, pipeline_parallel: int = 1, pipeline_stage: int = 0,
                    expert_parallel: int = 1, lora_rank: int = 0, weights: str = "", cache: str = "",
                    lora_targets: str = "") -> Graph:
        """The graph of a language model: of a Hugging Face config.json, by path or as a mapping, or of a name that
        `horus models` lists. Dimensions: batch, seq (new tokens) and, unless `training`, past (cached tokens; 0 where
        nobody binds it). `weights` and `cache`: types in place of the file's. `lora_targets`: "all-linear", or layers with commas between;
        those of attention else. docs/language-models.md says what is read.

        Raises FileError, CorruptError, LimitError, InvalidArgument, NotFound, Unsupported.
        """
        options = (training, tensor_parallel, pipeline_parallel, pipeline_stage, expert_parallel, lora_rank, weights, cache,
                   lora_targets)
        if isinstance(config, Mapping):
            return cls._of_config(json.dumps(dict(config)), str(config.get("model_type", "")), options)
        name = text(os.fsdecode(os.fspath(config)), "config")
        if not os.path.exists(name) and not name.endswith(".json"):
            return cls._of_config(name, name, options)
        with open(name, encoding="utf-8", errors="surrogateescape") as file:
            return cls._of_config(file.read(), os.path.basename(name), options)

    @classmethod
    def _of_config(cls, config: str, name: str, options: tuple[Any, ...]) -> Graph:
        return cls._made(_core.GraphHandle.from_config(config, *options), config.encode(errors="replace"), name, options)

    @classmethod
    def _from_bytes(cls, source: bytes | bytearray | memoryview, name: str) -> Graph:
        return cls._made(_core.GraphHandle.from_bytes(source), _core.without_weights(source), name)

    @classmethod
    def _made(cls, handle: _core.GraphHandle, source: bytes, name: str, options: tuple[Any, ...] | None = None) -> Graph:
        graph = cls.__new__(cls)
        graph._options = options
        graph._handle, graph._source, graph._name, graph._info = handle, source, name, handle.info()
        return graph

    def cost(self, run: RunSpec | None = None) -> StepCost:
        """What one step costs. `run`: None = training in float32 with SGD, batch of the file. Raises InvalidArgument
        (unknown dimension, contradictory shapes: node and operator are named)."""
        return StepCost(**self._handle.cost(_run(run)))

    def features(self, run: RunSpec | None = None) -> FeatureRow:
        """The feature row, without the columns that depend on the GPU type."""
        return FeatureRow(tuple(column[0] for column in _core.feature_schema()), self._handle.features(_run(run)))

    @property
    def name(self) -> str:
        """File name or name of the model; for people."""
        return self._name

    @property
    def fingerprint(self) -> int:
        """Of structure, types and attributes; names and weights do not count."""
        return int(self._info["fingerprint"])

    @property
    def nodes(self) -> int:
        """Of all subgraphs together."""
        return int(self._info["nodes"])

    @property
    def opset(self) -> int:
        """Of the default domain."""
        return int(self._info["opset"])

    @property
    def ir_version(self) -> int:
        """Of the file."""
        return int(self._info["ir_version"])

    @property
    def dims(self) -> tuple[str, ...]:
        """Named dimensions, which RunSpec.dims can bind."""
        return tuple(self._info["dims"])

    @property
    def bytes_held(self) -> int:
        """Memory of the graph in bytes, with the weight-free file that pickling needs."""
        return int(self._info["bytes_held"]) + len(self._source)

    def __repr__(self) -> str:
        name = f" {self._name!r}" if self._name else ""
        return f"<horus.Graph{name}: {self.nodes} nodes, opset {self.opset}, fingerprint {self.fingerprint:016x}>"

    def _repr_html_(self) -> str:
        return _table.pairs_to_html(repr(self), {
            "nodes": self.nodes, "opset": self.opset, "IR version": self.ir_version,
            "named dimensions": ", ".join(self.dims), "fingerprint": f"{self.fingerprint:016x}"})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpickled, (self._source, self._name, self._options))


def _unpickled(source: bytes, name: str, options: tuple[Any, ...] | None = None) -> Graph:
    return Graph._from_bytes(source, name) if options is None else Graph._of_config(source.decode(), name, options)


def _run(run: RunSpec | None) -> RunSpec:
    return _DEFAULT_RUN if run is None else instance(run, RunSpec, "run")


def _lean_file(path: str) -> bytes:
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
            return _core.without_weights(whole)
