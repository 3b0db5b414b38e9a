# SPDX-License-Identifier: Apache-2.0
"""libhorus: on which GPUs should this deep-learning job run, beside whom, at what expected slowdown?

The rooms in corridor order: graph, predict, interference, speeds, cluster, place, queue, trace, sim. Every name below is `horus.NAME`. They are
loaded when first used, so that `horus.plot` and `horus.report` work on result files, and `horus.profile` and `horus.steps` where jobs
run, without the compiled module.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._core import MEM_MIB_UNBOUNDED, PlacerOptions
    from .catalogue import Catalogue, Gpu, MigProfile, gpus
    from .cluster import Cluster, Device, Node, Slot, read_jobs
    from .comparison import Comparison, compare
    from .errors import (Busy, CallbackError, Cancelled, Conflict, CorruptError, Error, Exists, FileError, InternalError,
                         InvalidArgument, LimitError, NoMemory, NotFound, StateError, Unsupported)
    from .graph import FeatureColumn, FeatureRow, Graph, RunSpec, StepCost, feature_schema
    from .interference import InterferenceModel, Latency, Quantile, SharedDevice, Slowdown, largest_slowdown, request_latency
    from .place import (Alternative, Candidate, Change, Decision, Effect, Explanation, Job, Miss, Move, Placer, Plan,
                        Preemption, Sensitivity, TenantReview, Workload, policies)
    from .predict import Demand, DemandFlag, Observations, Predictor, Service, ServiceRun, Solution, demand_dtype, demand_rows, demands_of
    from .queue import Queue, QueuedJob, QueueOptions, queues
    from .sim import Outage, ProfileDemand, Rebalance, SimOptions, SimResult, Truth, simulate
    from .speeds import Potential, potential
    from .trace import SyntheticOptions, Trace
    from .metrics import Metric, Metrics

    __version__: str

_ROOMS = {
    "_core": ("MEM_MIB_UNBOUNDED", "PlacerOptions"),
    "catalogue": ("Catalogue", "Gpu", "MigProfile", "gpus"),
    "graph": ("FeatureColumn", "FeatureRow", "Graph", "RunSpec", "StepCost", "feature_schema"),
    "predict": ("Demand", "DemandFlag", "Observations", "Predictor", "Service", "ServiceRun", "Solution", "demand_dtype", "demand_rows", "demands_of"),
    "interference": ("InterferenceModel", "Latency", "Quantile", "SharedDevice", "Slowdown", "largest_slowdown",
                     "request_latency"),
    "speeds": ("Potential", "potential"),
    "cluster": ("Cluster", "Device", "Node", "Slot", "read_jobs"),
    "place": ("Alternative", "Candidate", "Change", "Decision", "Effect", "Explanation", "Job", "Miss", "Move",
              "Placer", "Plan", "Preemption", "Sensitivity", "TenantReview", "Workload", "policies"),
    "queue": ("Queue", "QueueOptions", "QueuedJob", "queues"),
    "trace": ("SyntheticOptions", "Trace"),
    "sim": ("Outage", "ProfileDemand", "Rebalance", "SimOptions", "SimResult", "Truth", "simulate"),
    "metrics": ("Metric", "Metrics"),
    "comparison": ("Comparison", "compare"),
    "errors": ("Busy", "CallbackError", "Cancelled", "Conflict", "CorruptError", "Error", "Exists", "FileError",
               "InternalError", "InvalidArgument", "LimitError", "NoMemory", "NotFound", "StateError", "Unsupported"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = ["MEM_MIB_UNBOUNDED", "Alternative", "Busy",
           "CallbackError", "Cancelled", "Candidate", "Catalogue", "Change", "Cluster", "Comparison", "Conflict", "CorruptError",
           "Decision", "Demand", "DemandFlag", "Device", "Effect", "Error", "Exists", "Explanation", "FeatureColumn", "FeatureRow",
           "FileError", "Gpu", "Graph", "InterferenceModel", "InternalError", "InvalidArgument", "Job", "Latency",
           "LimitError", "Metric", "MigProfile", "Miss", "Move", "NoMemory", "Node", "NotFound", "Observations", "Outage",
           "Placer", "PlacerOptions", "Plan", "Potential", "Predictor", "Preemption", "ProfileDemand", "Quantile", "Queue",
           "QueueOptions", "QueuedJob", "Rebalance", "RunSpec", "Sensitivity", "Service", "ServiceRun", "SharedDevice", "SimOptions",
           "SimResult", "Slot", "Slowdown", "Solution", "StateError", "StepCost", "SyntheticOptions", "TenantReview", "Trace",
           "Truth",
           "Unsupported", "Metrics", "Workload", "compare", "demand_dtype", "demand_rows", "demands_of", "feature_schema", "gpus",
           "largest_slowdown", "policies", "potential", "queues", "read_jobs", "request_latency", "simulate"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("._core", __name__).version()
    room = _ROOM_OF.get(name)
    if room is None:
        close = importlib.import_module("difflib").get_close_matches(name, _ROOM_OF, 1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        raise AttributeError(f"module 'horus' has no attribute {name!r}{meant}")
    value = getattr(importlib.import_module("." + room, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOM_OF, "__version__"])
