# SPDX-License-Identifier: Apache-2.0
"""libhorus: on which GPUs should this deep-learning job run, beside whom, at what expected slowdown?

The rooms in corridor order: graph, predict, interference, cluster, place, sim. Every name below is `horus.NAME`. They are
loaded when first used, so that `horus.plot` and `horus.report` work on result files where the compiled module is absent.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._core import (DEMAND_GIVEN, DEMAND_MEASURED, DEMAND_OUTSIDE, DEMAND_UNCALIBRATED, PlacerOptions)
    from .catalogue import Catalogue, Gpu, gpus
    from .cluster import Cluster, Device, Node, Slot
    from .errors import (Busy, CallbackError, Cancelled, Conflict, CorruptError, Error, Exists, FileError, InternalError,
                         InvalidArgument, LimitError, NoMemory, NotFound, StateError, Unsupported)
    from .graph import FeatureColumn, FeatureRow, Graph, RunSpec, StepCost, feature_schema
    from .interference import InterferenceModel, SharedDevice, Slowdown
    from .place import (Alternative, Candidate, Change, Decision, Effect, Explanation, Job, Miss, Move, Placer, Plan,
                        Preemption, Sensitivity, Workload, policies)
    from .predict import Demand, Observations, Predictor, Solution, demand_dtype, demand_rows, demands_of
    from .sim import Outage, ProfileDemand, SimOptions, SimResult, Trace, Truth, compare, queues, simulate

    __version__: str

_ROOMS = {
    "_core": ("DEMAND_GIVEN", "DEMAND_MEASURED", "DEMAND_OUTSIDE", "DEMAND_UNCALIBRATED", "PlacerOptions"),
    "catalogue": ("Catalogue", "Gpu", "gpus"),
    "graph": ("FeatureColumn", "FeatureRow", "Graph", "RunSpec", "StepCost", "feature_schema"),
    "predict": ("Demand", "Observations", "Predictor", "Solution", "demand_dtype", "demand_rows", "demands_of"),
    "interference": ("InterferenceModel", "SharedDevice", "Slowdown"),
    "cluster": ("Cluster", "Device", "Node", "Slot"),
    "place": ("Alternative", "Candidate", "Change", "Decision", "Effect", "Explanation", "Job", "Miss", "Move", "Placer",
              "Plan", "Preemption", "Sensitivity", "Workload", "policies"),
    "sim": ("Outage", "ProfileDemand", "SimOptions", "SimResult", "Trace", "Truth", "compare", "queues", "simulate"),
    "errors": ("Busy", "CallbackError", "Cancelled", "Conflict", "CorruptError", "Error", "Exists", "FileError",
               "InternalError", "InvalidArgument", "LimitError", "NoMemory", "NotFound", "StateError", "Unsupported"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = ["DEMAND_GIVEN", "DEMAND_MEASURED", "DEMAND_OUTSIDE", "DEMAND_UNCALIBRATED", "Alternative", "Busy",
           "CallbackError", "Cancelled", "Candidate", "Catalogue", "Change", "Cluster", "Conflict", "CorruptError",
           "Decision", "Demand", "Device", "Effect", "Error", "Exists", "Explanation", "FeatureColumn", "FeatureRow",
           "FileError", "Gpu", "Graph", "InterferenceModel", "InternalError", "InvalidArgument", "Job", "LimitError",
           "Miss", "Move", "NoMemory", "Node", "NotFound", "Observations", "Outage", "Placer", "PlacerOptions", "Plan",
           "Predictor", "Preemption", "ProfileDemand", "RunSpec", "Sensitivity", "SharedDevice", "SimOptions",
           "SimResult", "Slot", "Slowdown", "Solution", "StateError", "StepCost", "Trace", "Truth", "Unsupported",
           "Workload", "compare", "demand_dtype", "demand_rows", "demands_of", "feature_schema", "gpus", "policies",
           "queues", "simulate"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("._core", __name__).version()
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module 'horus' has no attribute {name!r}")
    value = getattr(importlib.import_module("." + room, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOM_OF, "__version__"])
