# SPDX-License-Identifier: Apache-2.0
"""Clusters, plans and decisions; policies in Python."""

import pickle

import numpy as np
import pytest


def test_plan_then_apply_then_release(horus, make):
    cluster, placer = make.cluster(), horus.Placer()
    empty = cluster.snapshot()
    plan = placer.place(cluster, make.job())
    assert cluster.snapshot() == empty  # planning changes nothing
    decision = plan[0]
    assert decision.verdict == "place" and len(decision.slots) == 1 and decision.reason == "" and decision.text
    assert sum(decision.terms.values()) == pytest.approx(decision.cost)
    assert [effect.job for effect in decision.effects] == [1]
    cluster.apply(plan)
    assert cluster.jobs.tolist() == [1] and cluster.slots(1) == decision.slots
    with pytest.raises(horus.Exists):
        cluster.apply(plan)
    cluster.release(1)
    with pytest.raises(horus.NotFound):
        cluster.release(1)
    assert cluster.info()["jobs"] == 0


def test_a_refusal_is_a_value(horus, make):
    cluster, placer = make.cluster(), horus.Placer()
    decision = placer.place(cluster, make.job(mem=200_000))[0]
    assert (decision.verdict, decision.reason) == ("reject", "gpu_memory")
    assert decision.miss.needed > decision.miss.available and decision.miss.unit == "MiB"
    assert decision.refusals["gpu_memory"] == 4 and np.isnan(decision.runner_up_cost) and decision.slots == ()
    cluster.set_node_state(1, "drained")
    cluster.set_node_state(2, "down")
    assert placer.place(cluster, make.job())[0].verdict == "defer"


def test_a_plan_is_a_sequence_with_columns(horus, make):
    plan = horus.Placer().place(make.cluster(), [*make.jobs(6), make.job(99, mem=200_000)])
    assert len(plan) == 7 and plan[-1] == list(plan)[-1] and plan[1:3] == list(plan)[1:3]
    assert len(plan.refused) == 7 - len(plan.placed) > 0
    columns = plan.columns()
    assert columns["job"].tolist() == [d.job for d in plan] and columns["verdict"].tolist() == [d.verdict for d in plan]
    assert columns["reason"].tolist() == [d.reason for d in plan]
    assert columns["node"].tolist() == [d.slots[0].node if d.slots else 0 for d in plan]
    with pytest.raises(IndexError):
        plan[7]
    with pytest.raises(TypeError):
        plan["x"]
    again = pickle.loads(pickle.dumps(plan))
    assert again == plan and repr(again) == repr(plan)
    with pytest.raises(horus.StateError, match="plan again"):
        make.cluster().apply(again)
    assert "<table>" in plan._repr_html_()


def test_frames(horus, make):
    pandas = pytest.importorskip("pandas")
    cluster = make.cluster(nodes=1, devices=1)
    plan = horus.Placer().place(cluster, make.jobs(3))
    frame = plan.to_frame()
    assert frame.shape[0] == 3
    for row, decision in zip(frame.to_dict("records"), plan):
        missing = [name for name in ("node", "device", "slowdown", "slowdown_upper") if pandas.isna(row[name])]
        assert len(missing) == (0 if decision.verdict == "place" else 4), row
    assert cluster.to_frame()["gpu_type"].unique().tolist() == ["v100-pcie-16gb"]
    assert "a100-40gb" in set(horus.gpus().to_frame()["name"])


def test_a_stale_plan_conflicts(horus, make):
    cluster, placer = make.cluster(nodes=1, devices=1), horus.Placer()
    first, second = placer.place(cluster, make.job(1)), placer.place(cluster, make.job(2))
    cluster.apply(first)
    with pytest.raises(horus.Conflict):
        cluster.apply(second)
    assert cluster.jobs.tolist() == [1]


def test_what_if_leaves_the_cluster(horus, make):
    cluster, placer = make.cluster(nodes=1, devices=1), horus.Placer("exclusive")
    cluster.apply(placer.place(cluster, make.job(1)))
    before = cluster.snapshot()
    with cluster.what_if() as copy:
        copy.release(1)
        copy.apply(placer.place(copy, make.job(2)))
        assert copy.jobs.tolist() == [2]
    assert cluster.snapshot() == before
    plan = placer.what_if(cluster, [horus.Change(kind="release", job=1)], make.job(2))
    assert plan[0].verdict == "place" and placer.place(cluster, make.job(2))[0].verdict == "defer"
    with pytest.raises(horus.StateError):
        cluster.apply(plan)


def test_snapshots_and_pickles_decide_alike(horus, make):
    cluster, placer = make.cluster(), horus.Placer()
    cluster.apply(placer.place(cluster, make.jobs(4)))
    job = make.job(50)
    for copy in (horus.Cluster.restore(cluster.snapshot()), pickle.loads(pickle.dumps(cluster))):
        assert copy == cluster and pickle.loads(pickle.dumps(placer)).place(copy, job) == placer.place(cluster, job)
    with pytest.raises(horus.CorruptError):
        horus.Cluster.restore(b"no snapshot")


def test_batches_are_never_worse(horus, make):
    cluster, jobs = make.cluster(), make.jobs(8)
    before, after = horus.Placer().place_batch(cluster, jobs).work()
    assert after >= before > 0


def test_preemption_and_rebalancing(horus, make):
    cluster, placer = make.cluster(nodes=1, devices=1), horus.Placer("exclusive")
    cluster.apply(placer.place(cluster, make.job(1)))
    plan = placer.preempt(cluster, make.job(2, priority=5))
    assert plan.preemptions[0].victims == (1,) and plan.moves[0].kind == "preempt"
    cluster.apply(plan)
    assert cluster.jobs.tolist() == [2]
    crowded = make.cluster(nodes=1, devices=2)
    for number in (1, 2):
        crowded.adopt(make.job(number, util=90), [horus.Slot(1, 0)])
    moves = horus.Placer().rebalance(crowded, min_gain=0.01, downtime_s=-1)
    assert [move.kind for move in moves.moves] == ["migrate"]
    crowded.apply(moves)
    assert crowded.device(1, 1)["jobs"] == [moves.moves[0].job]


def test_explanations_name_every_node(horus, make):
    cluster = make.cluster()
    cluster.set_node_state(2, "drained")
    why = horus.Placer().explain(cluster, make.job())
    assert why.nodes["verdict"].tolist() == ["place", "defer"] and why.nodes["reason"].tolist() == ["", "node_drained"]
    assert why.decision.text in str(why) and "<table>" in why._repr_html_()


def test_nodes_can_be_changed(horus, make):
    cluster = make.cluster()
    cluster.add_node(horus.Node(id=9, cpu_milli=1000, mem_mib=1000, devices=[horus.Device("t4", mem_mib=10_000)]))
    assert cluster.device(9, 0)["mem_mib"] == 10_000 and cluster.device(9, 0)["gpu_type"] == "t4"
    with pytest.raises(horus.Exists):
        cluster.add_node(horus.Node(id=9))
    cluster.change_node(horus.Node(id=9, cpu_milli=2000, mem_mib=1000, devices=[horus.Device("t4")] * 2))
    assert cluster.node(9)["devices"] == 2
    cluster.remove_node(9)
    with pytest.raises(horus.NotFound):
        cluster.node(9)
    assert cluster.set_device_state(1, 0, "down") == [] and cluster.device(1, 0)["device_state"] == "down"
    with pytest.raises(horus.InvalidArgument, match="drained"):
        cluster.set_node_state(1, "asleep")


def test_only_some_nodes(horus, make):
    cluster, placer = make.cluster(), horus.Placer()
    assert placer.place(cluster, make.job(), nodes=[2])[0].slots[0].node == 2
    assert placer.place(cluster, make.job(), nodes=[])[0].verdict != "place"
    with pytest.raises(horus.InvalidArgument, match="nodes"):
        placer.place(cluster, make.job(), nodes=[1.5])
    with pytest.raises(horus.NotFound):
        placer.place(cluster, make.job(), nodes=[77])


@pytest.mark.parametrize("wrong, words", [
    (dict(policy="nonsense"), ("nonsense", "first-fit")), (dict(policy=3), ("policy",)), (dict(nonsense=3), ("nonsense",)),
    (dict(interference="nonsense"), ("nonsense",)), (dict(max_tenants=-1), ("max_tenants",)),
    (dict(slowdown_bound="x"), ("slowdown_bound", "float")), (dict(catalogue=3), ("catalogue", "Catalogue")),
])
def test_wrong_options_are_named(horus, wrong, words):
    with pytest.raises((horus.Error, TypeError)) as caught:
        horus.Placer(**wrong)
    for word in words:
        assert word in str(caught.value)


def last_device(candidate):
    return -float(candidate.mem_mib) + float(candidate.demands["mem_mib"].sum())


def test_a_policy_is_a_callable_over_columns(horus, make):
    seen = []

    def beside_somebody(candidate):
        seen.append(candidate)
        return -float(len(candidate.demands))

    cluster, placer = make.cluster(), horus.Placer(beside_somebody)
    plan = placer.place(cluster, [make.job(i, util=10, mem=1_000) for i in (1, 2, 3)])
    assert len({(d.slots[0].node, d.slots[0].device) for d in plan}) == 1  # they pack
    assert seen[0].demands.dtype == horus.demand_dtype and seen[0].slowdown_after.tolist() == [1.0]
    assert seen[0].device.gpu_type == "v100-pcie-16gb" and seen[0].mem_mib > 0
    assert "beside_somebody" in repr(placer)
    again = pickle.loads(pickle.dumps(horus.Placer(last_device)))
    assert again.place(cluster, make.job()) == horus.Placer(last_device).place(cluster, make.job())


def test_a_policy_may_decline(horus, make):
    decision = horus.Placer(lambda candidate: None).place(make.cluster(), make.job())[0]
    assert (decision.verdict, decision.reason) == ("reject", "policy")


@pytest.mark.parametrize("answer, kind", [(lambda c: 1 / 0, ZeroDivisionError), (lambda c: "x", TypeError),
                                          (lambda c: float("nan"), None), (lambda: 1, TypeError)])
def test_what_a_policy_raises_comes_back_and_nothing_changed(horus, make, answer, kind):
    cluster, placer = make.cluster(), horus.Placer(answer)
    before = cluster.snapshot()
    with pytest.raises(kind or horus.CallbackError):
        placer.place(cluster, make.jobs(3))
    assert cluster.snapshot() == before


def test_calls_back_into_the_cluster_and_placer_are_busy(horus, make):
    cluster, raised = make.cluster(), []

    def calls_back(candidate):
        for call in (cluster.snapshot, lambda: cluster.release(1), lambda: placer.place(cluster, make.job(2)),
                     lambda: cluster.add_node(horus.Node(id=77))):
            try:
                call()
            except horus.Error as error:
                raised.append(type(error))
        return 0.0

    placer = horus.Placer(calls_back)
    placer.place(cluster, make.job())
    assert set(raised) == {horus.Busy} and len(raised) >= 4


def test_an_interference_callable_inside_a_placer(horus, make):
    placer = horus.Placer(interference=lambda device, tenants: np.full(len(tenants), 1.0 + 9.0 * (len(tenants) > 1)))
    plan = placer.place(make.cluster(nodes=1, devices=2), [make.job(i, util=5, mem=500) for i in (1, 2, 3)])
    assert [d.verdict for d in plan] == ["place", "place", "defer"]  # nobody shares at ten times


def test_a_node_is_evacuated_and_residents_tell_what_they_asked_for(horus, make):
    cluster = make.cluster(nodes=2, devices=1)
    for number in (1, 2):
        cluster.adopt(make.job(number, tenant="red"), [horus.Slot(1, 0)])
    first, second = cluster.specs()
    assert (first.id, first.tenant, first.share) == (1, "red", "same-tenant") and cluster.specs([2]) == (second,)
    assert first.demands["any"].gpu_util_pct == 40
    cluster.set_node_state(1, "drained")
    plan = horus.Placer().evacuate(cluster, [1])
    assert [move.kind for move in plan.moves] == ["migrate", "migrate"]
    cluster.apply(plan)
    assert cluster.node(1)["jobs"] == [] and cluster.node(2)["jobs"] == [1, 2]
    with pytest.raises(horus.NotFound):
        horus.Placer().evacuate(cluster, [9])


def test_an_appraisal_tells_what_any_place_would_do(horus, make):
    cluster = make.cluster(nodes=1, devices=2)
    placer = horus.Placer()
    cluster.adopt(make.job(1, tenant="red"), [horus.Slot(1, 0)])
    alone = placer.appraise(cluster, make.job(2, tenant="red"), [horus.Slot(1, 1)])
    beside = placer.appraise(cluster, make.job(2, tenant="red"), [horus.Slot(1, 0)])
    assert (alone["work"], alone["reason"], alone["slowdown"], alone["shared"]) == (1, "", 1, 0)
    assert beside["work"] < alone["work"] and beside["slowdown"] > 1 and (beside["tenants"], beside["shared"]) == (2, 1)
    assert placer.appraise(cluster, make.job(2, tenant="blue"), [horus.Slot(1, 0)])["reason"] == "owner"
    with pytest.raises(horus.Exists):
        placer.appraise(cluster, make.job(1), [horus.Slot(1, 1)])


def test_devices_have_the_ids_that_the_caller_gave_them(horus):
    node = horus.Node(id=1, devices=[horus.Device("t4", id="GPU-0a"), horus.Device("t4")])
    cluster = horus.Cluster([node])
    assert [cluster.device(1, at)["id"] for at in (0, 1)] == ["GPU-0a", ""]
    with pytest.raises(horus.InvalidArgument, match="device_ids"):
        horus.Cluster([horus.Node(id=1, devices=[horus.Device("t4", id="GPU-0a")] * 2)])


def test_a_review_says_who_breaks_its_bound_and_moves_it(horus, make):
    cluster = make.cluster(nodes=1, devices=2)
    cluster.adopt(make.job(1, util=90, slowdown_bound=1.1), [horus.Slot(1, 0)])
    cluster.adopt(make.job(2, util=90), [horus.Slot(1, 0)])
    plan = horus.Placer(interference="utilisation").review(cluster, downtime_s=-1)
    first, second = plan.reviews
    assert (first.job, first.broken, first.advice, first.bound) == (1, True, "move", pytest.approx(1.1))
    assert (second.job, second.broken, second.advice) == (2, False, "stay")
    cluster.apply(plan)
    assert horus.Placer().review(cluster).reviews == []


@pytest.mark.parametrize(("upper", "trial"), [(1.9, False), (2.5, True)])
def test_sharing_that_pays_by_expectation_alone_is_a_trial(horus, make, upper, trial):
    def slowed(device, tenants):
        many = len(tenants) > 1
        return np.full(len(tenants), 1.2 if many else 1.0), np.full(len(tenants), upper if many else 1.0)

    placer = horus.Placer(interference=horus.InterferenceModel.from_callable(slowed))
    cluster = make.cluster(nodes=1, devices=1)
    plan = placer.place(cluster, [make.job(1), make.job(2)])
    assert [decision.trial for decision in plan] == [False, trial]
    assert [effect.calibrated_up_to for effect in plan[0].effects] == [1]  # alone
    cluster.apply(plan)
    assert [one.trial for one in placer.review(cluster).reviews] == [trial, trial]
