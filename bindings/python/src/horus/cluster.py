# SPDX-License-Identifier: Apache-2.0
"""Clusters: nodes, devices and the jobs on them; apply and release, states, snapshots."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _core, _table
from ._args import ids, instance, integer, sequence, text
from ._core import Device, Job, Node, Slot
from .catalogue import Catalogue, handle_of
from .predict import Predictor, _bytes_of
from .metrics import Metrics
from .metrics import handle_of as metrics_handle_of

if TYPE_CHECKING:
    from .place import Plan

__all__ = ["Cluster", "Device", "Node", "Slot", "read_jobs"]


class Cluster:
    """A cluster and its residents. Reading, planning, applying and releasing may run side by side in threads; the other
    writers wait for them. From a callback of a plan over it every call raises Busy."""

    __slots__ = ("_catalogue", "_handle")

    def __init__(self, nodes: Iterable[Node] = (), catalogue: Catalogue | None = None) -> None:
        """An empty cluster, then `nodes`, over the GPU types of the catalogue (None = the built-in ones)."""
        self._handle = _core.ClusterHandle(handle_of(catalogue))
        self._catalogue = catalogue
        for node in sequence(nodes, Node, "nodes"):
            self._handle.add_node(node)

    @classmethod
    def from_yaml(cls, source: str | os.PathLike[str], catalogue: Catalogue | None = None,
                  predictor: Predictor | None = None) -> Cluster:
        """The cluster of a cluster.yaml (docs/files.md), with the jobs that run already, as `horus place` reads it. `source`: a
        path, or the text itself, which has line breaks. `predictor` (None = the built-in one) answers for residents that
        name a model. Raises FileError, and InvalidArgument: "file:line: key: expected ..., found ..."."""
        made = cls.__new__(cls)
        made._handle, types = _core.read_cluster(handle_of(catalogue), _predictor(predictor), *_source(source))
        base = catalogue or Catalogue()
        added = types.all()[len(base):]
        made._catalogue = base._with(types, added) if added else catalogue
        return made

    @classmethod
    def restore(cls, snapshot: bytes | bytearray | memoryview, catalogue: Catalogue | None = None) -> Cluster:
        """From `snapshot`; later decisions are those of the original."""
        made = cls.__new__(cls)
        made._handle = _core.ClusterHandle.restore(handle_of(catalogue), _bytes_of(snapshot))
        made._catalogue = catalogue
        return made

    def snapshot(self) -> bytes:
        """The whole state; equal states give equal bytes."""
        return self._handle.snapshot()

    @contextmanager
    def what_if(self) -> Iterator[Cluster]:
        """A copy to try things on: `with cluster.what_if() as copy: ...` leaves this cluster as it is. Where only a
        decision is asked for, `Placer.what_if` is cheaper."""
        yield Cluster.restore(self.snapshot(), self._catalogue)

    # Nodes.

    def add_node(self, node: Node) -> None:
        """Raises Exists (id), InvalidArgument (field), NotFound (GPU type)."""
        self._handle.add_node(instance(node, Node, "node"))

    def change_node(self, node: Node) -> None:
        """Another specification for the node of that id. Raises StateError where a resident would lose its place."""
        self._handle.change_node(instance(node, Node, "node"))

    def remove_node(self, node: int) -> None:
        """Raises StateError while jobs are there."""
        self._handle.remove_node(integer(node, "node"))

    def set_node_state(self, node: int, state: str) -> list[int]:
        """up, drained (residents stay, nothing new comes) or down. The jobs that are resident there, which stay."""
        return self._handle.set_state(integer(node, "node"), None, text(state, "state"))

    def set_device_state(self, node: int, device: int, state: str) -> list[int]:
        """The same of one device."""
        return self._handle.set_state(integer(node, "node"), integer(device, "device", 0, 2**32 - 1), text(state, "state"))

    # Jobs.

    def apply(self, plan: Plan) -> None:
        """Carries out a plan, or nothing. Raises Conflict (a node changed: plan again), Exists (applied already)."""
        from .place import Plan

        instance(plan, Plan, "plan")._live().apply(self._handle)

    def adopt(self, job: Job, slots: Sequence[Slot]) -> str:
        """Takes in a job that runs already. The first constraint that it breaks where it runs, or ''."""
        return self._handle.adopt(instance(job, Job, "job"), sequence(slots, Slot, "slots"))

    def release(self, job: int) -> None:
        """Removes a job. Raises NotFound, so that a second release is harmless."""
        self._handle.release(integer(job, "job"))

    def set_metrics(self, metrics: Metrics | None) -> None:
        """Lets `metrics` count and log the calls on this cluster; None = none. Waits for calls that run."""
        _core.meter_cluster(metrics_handle_of(metrics), self._handle)

    # What there is.

    @property
    def catalogue(self) -> Catalogue:
        """Its GPU types, those of a file's gpu_types_files included."""
        return Catalogue() if self._catalogue is None else self._catalogue

    @property
    def nodes(self) -> npt.NDArray[np.uint64]:
        """Ids of all nodes, ascending."""
        return self._handle.nodes()

    @property
    def jobs(self) -> npt.NDArray[np.uint64]:
        """Ids of all resident jobs, ascending."""
        return self._handle.jobs()

    def info(self) -> dict[str, Any]:
        """Totals: nodes, devices, jobs, utilisation, memory; state_hash is equal for equal states."""
        return self._handle.info()

    def node(self, node: int) -> dict[str, Any]:
        """One node: what it has, what is free, its jobs."""
        return self._handle.node(integer(node, "node"))

    def device(self, node: int, device: int) -> dict[str, Any]:
        """One device: type, memory, utilisation, its jobs."""
        found = self._handle.device(integer(node, "node"), integer(device, "device", 0, 2**32 - 1))
        found["gpu_type"] = self.catalogue[found["gpu_type"]].name
        return found

    def job(self, job: int) -> dict[str, Any]:
        """One resident job."""
        return self._handle.job(integer(job, "job"))

    def specs(self, jobs: Any = None) -> tuple[Job, ...]:
        """What residents asked for, as they can be placed again: of those ids in that order; None = all, by ascending
        id."""
        return self._handle.specs(ids(jobs, "jobs"))

    def slots(self, job: int) -> tuple[Slot, ...]:
        """Where a resident job runs."""
        return self._handle.job_slots(integer(job, "job"))

    def to_frame(self) -> Any:
        """A row a device (pandas)."""
        return _table.frame(self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        names = self.catalogue.names
        rows = []
        for node in self.nodes.tolist():
            for device in range(self._handle.node(node)["devices"]):
                row = self._handle.device(node, device)
                row["gpu_type"] = names[row["gpu_type"]]
                rows.append(row)
        return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}

    @property
    def bytes_held(self) -> int:
        """Memory in bytes."""
        return int(self.info()["bytes_held"])

    def __repr__(self) -> str:
        info = self.info()
        return (f"<horus.Cluster: {info['nodes']} nodes, {info['devices_used']} of {info['devices']} devices in use, "
                f"{info['jobs']} jobs>")

    def _repr_html_(self) -> str:
        columns = self._columns()
        shown = ("node", "device", "gpu_type", "sharing_mode", "mem_mib", "mem_reserved_mib", "gpu_util_pct", "jobs")
        return _table.to_html(repr(self), {name: columns[name] for name in shown} if columns else {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cluster) and self.snapshot() == other.snapshot()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (Cluster.restore, (self.snapshot(), self._catalogue))


def read_jobs(source: str | os.PathLike[str], cluster: Cluster, predictor: Predictor | None = None) -> list[Job]:
    """The jobs of a jobs.yaml (docs/files.md) for the cluster, with their demands, as `horus place` reads them; `source` and
    `predictor` as of Cluster.from_yaml. Jobs without gpu_types may use the types of the cluster's nodes."""
    handle = instance(cluster, Cluster, "cluster")._handle
    return list(_core.read_jobs(handle, _predictor(predictor), *_source(source)))


def _predictor(predictor: Predictor | None) -> _core.PredictorHandle | None:
    return None if predictor is None else instance(predictor, Predictor, "predictor")._handle


def _source(source: str | os.PathLike[str]) -> tuple[str, str | None]:
    """Path and text; of text the path stands for it in messages."""
    if isinstance(source, str) and "\n" in source:
        return "<text>", text(source, "source")
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"source: expected a path or text with line breaks, found {source!r:.80} ({type(source).__name__})")
    return text(os.fsdecode(os.fspath(source)), "source"), None
