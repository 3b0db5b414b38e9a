# SPDX-License-Identifier: Apache-2.0
"""Placement: plans, the decisions in them and why. Planning never changes a cluster; `Cluster.apply` does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from . import _core, _table
from ._args import Progress, column, ids, instance, integer, progress_of, real, sequence, text
from ._core import (Alternative, Candidate, Change, Decision, Effect, Job, Miss, Move, Preemption, Sensitivity, Slot,
                    TenantReview, Workload)
from .catalogue import Catalogue, handle_of
from .cluster import Cluster
from .errors import StateError
from .interference import InterferenceModel, model_of
from .metrics import Metrics
from .metrics import handle_of as metrics_handle_of

__all__ = ["Alternative", "Candidate", "Change", "Decision", "Effect", "Explanation", "Job", "Miss", "Move", "Placer",
           "Plan", "Preemption", "Sensitivity", "TenantReview", "Workload", "policies"]

_VERDICTS = ("place", "defer", "reject")
_NO_DEVICE = 2**32 - 1


def policies() -> list[str]:
    """Names of the built-in policies."""
    return _core.policy_names()


class Plan(Sequence[Decision]):
    """Decisions for some jobs, one a job in planning order, to be applied all or nothing. Immutable: share freely."""

    __slots__ = ("_decisions", "_handle")

    def __init__(self, handle: _core.PlanHandle | None, decisions: tuple[Decision, ...] | None = None) -> None:
        self._handle = handle
        self._decisions = decisions

    def _live(self) -> _core.PlanHandle:
        if self._handle is None:
            raise StateError("a plan that was pickled has its decisions alone: plan again")
        return self._handle

    def _all(self) -> tuple[Decision, ...]:
        if self._decisions is None:
            handle = self._live()
            self._decisions = tuple(handle.at(i) for i in range(len(handle)))
        return self._decisions

    def __len__(self) -> int:
        return len(self._all() if self._handle is None else self._handle)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list(self._all()[index])
        position = integer(index + len(self) if isinstance(index, int) and index < 0 else index, "index", -(2**62), 2**62)
        if not 0 <= position < len(self):
            raise IndexError(f"index: expected less than {len(self)}, found {index}")
        return self._all()[position] if self._handle is None else self._handle.at(position)

    def __iter__(self) -> Iterator[Decision]:
        return iter(self._all())

    @property
    def placed(self) -> list[Decision]:
        """The decisions that place their job."""
        return [decision for decision in self if decision.verdict == "place"]

    @property
    def refused(self) -> list[Decision]:
        """The decisions that defer or reject it, each with its reason."""
        return [decision for decision in self if decision.verdict != "place"]

    @property
    def moves(self) -> list[Move]:
        """Migrations, resizes and preemptions of residents."""
        handle = self._live()
        return [handle.move(i) for i in range(handle.move_count())]

    @property
    def preemptions(self) -> list[Preemption]:
        """Candidates of `Placer.preempt`, by ascending loss."""
        handle = self._live()
        return [handle.preemption(i) for i in range(handle.preemption_count())]

    @property
    def reviews(self) -> list[TenantReview]:
        """What `Placer.review` says of each job that shares: broken bounds first, the furthest ahead, then by
        `pack_work`."""
        handle = self._live()
        return [handle.review(i) for i in range(handle.review_count())]

    def work(self) -> tuple[float, float]:
        """Useful work of the cluster without and with the plan; NaN where the way of planning does not tell, as `place`. Of
        `place_batch` what the jobs add to the cluster: placed one by one, and as in this plan; NaN where there is no room for
        all."""
        return self._live().work()

    def columns(self) -> dict[str, Any]:
        """A row a decision: job, verdict, reason, node and device of the first slot (0 and 2**32 - 1 = none), slots, slowdown
        (0 = not placed), cost, ..."""
        out: dict[str, Any] = dict(self._live().columns())
        out["verdict"] = np.asarray(_VERDICTS)[out["verdict"]]
        out["reason"] = np.asarray([_core.reason_name(r) if r else "" for r in out["reason"].tolist()])
        return out

    def to_frame(self) -> Any:
        """A row a decision (pandas). What a job has not is missing: node and slowdown of one that is refused, device of one
        without a GPU."""
        columns = self.columns()
        frame = _table.frame(columns)
        for name, none in (("node", columns["slots"] == 0), ("device", columns["device"] == _NO_DEVICE)):
            frame[name] = frame[name].astype("UInt64").mask(none)
        for name in ("slowdown", "slowdown_upper"):
            frame[name] = frame[name].mask(columns["verdict"] != "place")
        return frame

    @property
    def bytes_held(self) -> int:
        """Memory in bytes, about."""
        return self._live().bytes_held()

    def __repr__(self) -> str:
        counts = {verdict: 0 for verdict in _VERDICTS}
        for decision in self:
            counts[decision.verdict] += 1
        return (f"<horus.Plan: {counts['place']} placed, {counts['defer']} deferred, {counts['reject']} rejected>")

    def _repr_html_(self) -> str:
        rows = list(self)
        return _table.to_html(repr(self), {
            "job": [d.job for d in rows], "verdict": [d.verdict for d in rows],
            "where": [", ".join(f"{s.node}:{s.device}" for s in d.slots) for d in rows],
            "slowdown": [d.slowdown for d in rows], "why": [d.text for d in rows]})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._all() == other._all()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (Plan, (None, self._all()))


class Explanation:
    """Why a job goes where it goes: its decision, and the verdict of every node."""

    __slots__ = ("decision", "nodes")

    def __init__(self, decision: Decision, nodes: dict[str, Any]) -> None:
        self.decision = decision
        self.nodes = nodes

    def to_frame(self) -> Any:
        """A row a node: verdict, cost (NaN unless it can take the job) and reason (pandas)."""
        return _table.frame(self.nodes)

    def __str__(self) -> str:
        lines = [self.decision.text]
        lines += [f"  {name}: {value:.4g}" for name, value in self.decision.terms.items()]
        lines += [f"  {count} devices refused: {reason}" for reason, count in self.decision.refusals.items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<horus.Explanation of job {self.decision.job}: {self.decision.verdict}>"

    def _repr_html_(self) -> str:
        return _table.to_html(self.decision.text, self.nodes)


class Placer:
    """Places jobs by one policy and one interference model. One thread at a time: make one a thread.

    `policy`: a name of `policies()`, or your own: a callable that gets a Candidate (a device that passed every
    constraint, as columns) and answers its cost, lower is better, or None: rather not. It must be a pure function of the
    candidate. What it raises comes back as itself, and nothing changed.
    `interference`: an InterferenceModel, the name of one, or a callable (see InterferenceModel.from_callable).
    """

    __slots__ = ("_arguments", "_handle", "_interference", "_policy")

    def __init__(self, policy: str | Callable[[Candidate], float | None] = "horus", *,
                 interference: InterferenceModel | str | Callable[..., Any] | None = None, slowdown_bound: float = 0,
                 max_tenants: int = 0, seed: int = 0, mem_headroom_mib: int = 0, mem_overcommit: float = 0,
                 probe_outside: bool = False, workload: Workload | None = None, catalogue: Catalogue | None = None,
                 **options: Any) -> None:
        """`slowdown_bound`: for jobs without their own; 0 = the policy's default, infinity = none. `max_tenants` of a
        device: 0 = 3. Further options: the fields of horus.PlacerOptions. Raises NotFound (policy)."""
        call: Callable[[Candidate], float | None] | None = None
        if isinstance(policy, str):
            options["policy"] = text(policy, "policy")
        elif callable(policy):
            call = policy
            options["policy"] = getattr(policy, "__name__", "callable")
        else:
            raise TypeError(f"policy: expected a name or a callable, found {policy!r:.80} ({type(policy).__name__})")
        self._policy = policy
        self._interference = model_of(interference)
        how = _core.PlacerOptions(
            slowdown_bound=slowdown_bound, max_tenants=max_tenants, seed=seed, mem_headroom_mib=mem_headroom_mib,
            mem_overcommit=mem_overcommit, probe_outside=probe_outside, workload=workload, **options)
        model = None if self._interference is None else self._interference._handle
        self._handle = _core.PlacerHandle(how, model, call, handle_of(catalogue))
        self._arguments = (how, catalogue)

    def place(self, cluster: Cluster, jobs: Job | Iterable[Job], nodes: Any = None, progress: Progress = None) -> Plan:
        """Plans jobs in the order (priority, submission time, id), each seeing those before it. `nodes`: ids of the only
        ones to consider. A job that does not fit is no error: its decision says defer or reject, and why."""
        if type(jobs) is Job and progress is None:
            return Plan(self._handle.place_one(instance(cluster, Cluster, "cluster")._handle, jobs,
                                               None if nodes is None else ids(nodes, "nodes")))
        with progress_of(progress, "place") as tell:
            return Plan(self._handle.place(instance(cluster, Cluster, "cluster")._handle, _jobs(jobs), ids(nodes, "nodes"),
                                           tell))

    def place_batch(self, cluster: Cluster, jobs: Iterable[Job], nodes: Any = None, *, window: int = 0, now_us: int = 0,
                    patience_us: int = 0, prices: bool = True, max_rounds: int = 0, restarts: int = 0,
                    max_evaluations: int = 0, progress: Progress = None) -> Plan:
        """The same, the jobs weighed together. Where there is not room for all, the job whose place is worth most goes
        next: of `window` (0 = 50) that fit, by the `prices` of their kinds, within a priority. From `patience_us` of
        waiting on (0 = never) nobody who wants such GPUs passes a job."""
        with progress_of(progress, "place_batch") as tell:
            return Plan(self._handle.place_batch(
                instance(cluster, Cluster, "cluster")._handle, _jobs(jobs), ids(nodes, "nodes"),
                integer(window, "window", 0, 2**32 - 1), integer(now_us, "now_us", -2**63, 2**63 - 1),
                integer(patience_us, "patience_us", 0, 2**63 - 1), instance(prices, bool, "prices"),
                integer(max_rounds, "max_rounds", 0, 2**32 - 1), integer(restarts, "restarts", 0, 2**32 - 1),
                integer(max_evaluations, "max_evaluations"), tell))

    def rebalance(self, cluster: Cluster, jobs: Any = None, *, max_migrations: int = 0, downtime_s: float = 0,
                  horizon_s: float = 0, min_gain: float = 0, max_searches: int = 0, progress: Progress = None) -> Plan:
        """Migrations that gain more work than they cost. `jobs`: ids of the only ones that may move. An empty plan says
        that nothing gains."""
        with progress_of(progress, "rebalance") as tell:
            return Plan(self._handle.rebalance(
                instance(cluster, Cluster, "cluster")._handle, ids(jobs, "jobs"),
                integer(max_migrations, "max_migrations", 0, 2**32 - 1), real(downtime_s, "downtime_s"),
                real(horizon_s, "horizon_s"), real(min_gain, "min_gain"), integer(max_searches, "max_searches"), tell))

    def review(self, cluster: Cluster, *, max_migrations: int = 0, downtime_s: float = 0, horizon_s: float = 0,
               min_gain: float = 0, max_searches: int = 0) -> Plan:
        """Who breaks its bound, whose pack does less than one job alone, and what to do: see `Plan.reviews`. The plan
        makes the moves among the advices. Ask after `InterferenceModel.observe`, with a placer of the new model."""
        return Plan(self._handle.review(
            instance(cluster, Cluster, "cluster")._handle, integer(max_migrations, "max_migrations", 0, 2**32 - 1),
            real(downtime_s, "downtime_s"), real(horizon_s, "horizon_s"), real(min_gain, "min_gain"),
            integer(max_searches, "max_searches")))

    def evacuate(self, cluster: Cluster, nodes: Any, *, progress: Progress = None) -> Plan:
        """Everything off `nodes` (ids), in one plan: a decision for each job that is there, and a move where another place
        takes it; what finds none stays. Drain the nodes first, so that nothing new comes."""
        with progress_of(progress, "evacuate") as tell:
            return Plan(self._handle.evacuate(instance(cluster, Cluster, "cluster")._handle,
                                              column(nodes, np.uint64, "nodes"), tell))

    def appraise(self, cluster: Cluster, job: Job, slots: Sequence[Slot]) -> dict[str, Any]:
        """What a place of the job would do, whoever chose it: `work` gained, the `reason` that forbids it or '', the job's
        `slowdown` and `slowdown_upper`, `tenants` of its devices, those `shared`, and how many are `beyond_bound`. What
        that choice costs beside the placer's, its regret, is the work of the slots that `place` decides less that of these.
        The job may not be resident."""
        return self._handle.appraise(instance(cluster, Cluster, "cluster")._handle, instance(job, Job, "job"),
                                     sequence(slots, Slot, "slots"))

    def preempt(self, cluster: Cluster, job: Job, nodes: Any = None, *, max_candidates: int = 0,
                max_checks: int = 0) -> Plan:
        """Who of lower priority would have to go for the job; see `Plan.preemptions`."""
        return Plan(self._handle.preempt(
            instance(cluster, Cluster, "cluster")._handle, instance(job, Job, "job"), ids(nodes, "nodes"),
            integer(max_candidates, "max_candidates", 0, 2**32 - 1), integer(max_checks, "max_checks")))

    def what_if(self, cluster: Cluster, changes: Iterable[Change], jobs: Job | Iterable[Job] = (),
                progress: Progress = None) -> Plan:
        """Decides the jobs as `place` would after the changes. The plan cannot be applied."""
        with progress_of(progress, "what_if") as tell:
            return Plan(self._handle.what_if(instance(cluster, Cluster, "cluster")._handle,
                                             sequence(changes, Change, "changes"), _jobs(jobs), tell))

    def explain(self, cluster: Cluster, job: Job) -> Explanation:
        """Where the job would go and why, and what every node says to it. The job may not be resident."""
        where = instance(cluster, Cluster, "cluster")
        nodes: dict[str, Any] = dict(self._handle.verdicts(where._handle, instance(job, Job, "job"), where.nodes))
        nodes["verdict"] = np.asarray(_VERDICTS)[nodes["verdict"]]
        nodes["reason"] = np.asarray([_core.reason_name(r) if r else "" for r in nodes["reason"].tolist()])
        return Explanation(self.place(where, job)[0], nodes)

    def set_metrics(self, metrics: Metrics | None) -> None:
        """Lets `metrics` count and log the calls on this placer; None = none. Waits for calls that run."""
        _core.meter_placer(metrics_handle_of(metrics), self._handle)

    @property
    def policy(self) -> str | Callable[[Candidate], float | None]:
        """Name or callable."""
        return self._policy

    @property
    def bytes_held(self) -> int:
        """Memory in bytes, its caches included."""
        return self._handle.bytes_held()

    def __repr__(self) -> str:
        model = "horus" if self._interference is None else self._interference.name
        return f"<horus.Placer: policy {self._arguments[0].policy!r}, interference {model!r}>"

    def _repr_html_(self) -> str:
        return _table.pairs_to_html(repr(self), self._arguments[0].to_dict())

    def __reduce__(self) -> tuple[Any, ...]:
        options = self._arguments[0].to_dict()
        del options["policy"]
        return (_unpickled, (self._policy, self._interference, self._arguments[1], options))


def _unpickled(policy: Any, interference: Any, catalogue: Any, options: dict[str, Any]) -> Placer:
    return Placer(policy, interference=interference, catalogue=catalogue, **options)


def _jobs(jobs: Job | Iterable[Job]) -> tuple[Job, ...]:
    return (jobs,) if isinstance(jobs, Job) else sequence(jobs, Job, "jobs")
