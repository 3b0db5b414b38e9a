# SPDX-License-Identifier: Apache-2.0
"""Values (Job, Node, Demand, ...): made by keywords, checked, compared, shown, pickled."""

import copy
import pickle

import numpy as np
import pytest


def samples(horus):
    demand = horus.Demand(gpu_util_pct=40, gpu_util_pct_upper=50, mem_mib=4000, flags=5, traits=[1, 2, 3, 4, 5, 6, 7, 8], profile_id=2**64 - 1)
    return [
        demand,
        horus.RunSpec(batch=32, precision="amp", optimizer="adamw", dims={"seq": 128}, frozen=["encoder."]),
        horus.Device("t4", sharing_mode="mps", max_tenants=2, mem_mib=15_000),
        horus.Node(id=3, name="n", cpu_milli=1000, mem_mib=2000, labels={"zone": "east"}, devices=[horus.Device("t4")]),
        horus.Job(id=7, kind="best-effort", demands={"t4": demand}, selectors={"zone": "east"}, groups=("a",), priority=-5),
        horus.Job(id=8, alternatives=[horus.Alternative(tasks=2, rate=1.5, demands={"any": demand}, cpu_milli=500)]),
        horus.Job(id=9, sensitivity=horus.Sensitivity(cpu_milli=[1000, 2000], mem_mib=[1024], speeds=[0.5, 1])),
        horus.SharedDevice("t4", sharing_mode="mps"),
        horus.Slot(1, 2, 3),
        horus.Change(kind="release", job=4),
        horus.Workload(gpus=[1], shares=[1.0], gpu_types=[""]),
        horus.gpus()["t4"],
    ]


def test_values_survive_pickling_copying_and_their_own_repr(horus):
    for value in samples(horus):
        again = pickle.loads(pickle.dumps(value))
        assert again == value and copy.deepcopy(value) == value, value
        assert eval(repr(value), {**vars(horus), **{type(value).__name__: type(value)},
                                  **{n: getattr(horus, n) for n in horus.__all__}}) == value


def test_replace_leaves_the_original(horus):
    job = horus.Job(id=1, cpu_milli=5)
    other = job.replace(id=2, demands={"any": horus.Demand(mem_mib=5)})
    assert (job.id, other.id, other.cpu_milli, len(job.demands), len(other.demands)) == (1, 2, 5, 0, 1)


def test_values_do_not_change(horus):
    with pytest.raises(AttributeError):
        horus.Job(id=1).id = 2


def test_numpy_numbers_are_numbers(horus):
    job = horus.Job(id=np.uint64(5), tasks=np.int32(2), slowdown_bound=np.float32(1.5), exclusive=np.bool_(True))
    assert (job.id, job.tasks, job.slowdown_bound, job.exclusive) == (5, 2, 1.5, True)


@pytest.mark.parametrize("fields, words", [
    ({"id": "x"}, ("Job.id", "int", "'x'")), ({"id": -1}, ("Job.id", "0 to", "-1")), ({"id": 2**64}, ("Job.id",)),
    ({"id": True}, ("Job.id", "int")), ({"tasks": 1.5}, ("Job.tasks", "int", "1.5")), ({"tasks": 2**31}, ("Job.tasks",)),
    ({"kind": "toast"}, ("Job.kind", "best-effort", "toast")), ({"name": 3}, ("Job.name", "str")),
    ({"name": "a\0b"}, ("Job.name", "NUL")), ({"name": "\ud800"}, ("Job.name", "UTF-8")),
    ({"exclusive": 1}, ("Job.exclusive", "bool")), ({"demands": [1]}, ("Job.demands", "mapping")),
    ({"demands": {"t4": 3}}, ("Job.demands[t4]", "Demand", "3")), ({"demands": {3: 3}}, ("Job.demands: key", "str")),
    ({"groups": "abc"}, ("Job.groups", "sequence")), ({"groups": [1]}, ("Job.groups[0]", "str")),
    ({"slowdown_bound": "1"}, ("Job.slowdown_bound", "float")), ({"nonsense": 1}, ("nonsense", "priority")),
    ({"sensitivity": 3}, ("Job.sensitivity", "Sensitivity")),
])
def test_a_wrong_field_is_named_with_expected_and_found(horus, fields, words):
    with pytest.raises((TypeError, ValueError)) as caught:
        horus.Job(**fields)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("make, words", [
    (lambda h: h.RunSpec(batch=0), ("RunSpec.batch", "at least 1, or None", "0")),
    (lambda h: h.RunSpec(batch=-3), ("RunSpec.batch", "-3")),
    (lambda h: h.RunSpec(data_parallel=-1), ("RunSpec.data_parallel", "at least 0", "-1")),
    (lambda h: h.Demand(gpu_util_pct=140), ("Demand.gpu_util_pct", "0 to 100", "140")),
    (lambda h: h.Demand(mem_mib=-1), ("Demand.mem_mib", "at least 0", "-1")),
    (lambda h: h.Demand(power_w=float("nan")), ("Demand.power_w", "nan")),
    (lambda h: h.Job(gpu_milli=1_200), ("Job.gpu_milli", "0 to 1000", "1200")),
    (lambda h: h.Job(cpu_milli=np.int64(-5)), ("Job.cpu_milli", "-5")),
    (lambda h: h.Node(mem_mib=-1), ("Node.mem_mib", "at least 0")),
    (lambda h: h.Job(id=1).replace(tasks=-1), ("Job.tasks", "-1")),
])
def test_impossible_figures_are_refused_where_they_are_given(horus, make, words):
    with pytest.raises(horus.InvalidArgument) as caught:
        make(horus)
    for word in words:
        assert word in str(caught.value)


def test_a_run_without_a_batch_has_none(horus):
    run = horus.RunSpec()
    assert run.batch is None and horus.RunSpec(**run.to_dict()) == run == horus.RunSpec(batch=4).replace(batch=None)


@pytest.mark.parametrize("fields, meant", [
    ({"optimizer": "AdamW"}, "adamw"), ({"precision": "float16"}, "fp16"), ({"precision": "torch.bfloat16"}, "bf16"),
    ({"optimizer": "adam8bit"}, "adam-8bit"), ({"framework": "PyTorch"}, "pytorch"), ({"mode": "train"}, "training"),
    ({"optimizer": "addagrad"}, "adagrad"), ({"batch_size": 4}, "batch"),
])
def test_the_word_that_was_meant_is_suggested(horus, fields, meant):
    with pytest.raises((TypeError, ValueError), match=f"; did you mean '{meant}'"):
        horus.RunSpec(**fields)
    with pytest.raises(horus.InvalidArgument) as caught:
        horus.RunSpec(optimizer="xyz")
    assert "did you mean" not in str(caught.value)


def test_flags_have_names(horus):
    demand = horus.Demand(flags=horus.DemandFlag.GIVEN | horus.DemandFlag.OUTSIDE)
    assert demand.flags == 5 and horus.DemandFlag.OUTSIDE in demand.flags and demand.given and not demand.measured
    assert "flags=DemandFlag.GIVEN | DemandFlag.OUTSIDE" in repr(demand)
    assert pickle.loads(pickle.dumps(demand)) == demand and horus.Demand().flags == horus.DemandFlag(0)


def test_too_many_and_doubled_arguments(horus):
    with pytest.raises(TypeError, match="1 positional"):
        horus.Device("t4", "mps")
    with pytest.raises(TypeError, match="twice"):
        horus.Device("t4", gpu_type="t4")


def test_rows_of_demands_are_the_struct(horus):
    demands = [horus.Demand(gpu_util_pct=10 * i, mem_mib=i, profile_id=i, traits=[i] * 8) for i in range(4)]
    rows = horus.demand_rows(demands)
    assert rows.dtype == horus.demand_dtype and rows["gpu_util_pct"].tolist() == [0, 10, 20, 30]
    assert (rows["struct_size"] == horus.demand_dtype.itemsize).all() and rows["traits"][3].tolist() == [3] * 8
    made = horus.demand_rows(gpu_util_pct=[0, 10, 20, 30], mem_mib=np.arange(4), profile_id=range(4))
    assert (made["mem_mib"] == rows["mem_mib"]).all()


@pytest.mark.parametrize("columns, words", [
    ({"gpu_util_pct": [1, 2], "mem_mib": [1]}, ("mem_mib", "2 rows", "1")), ({"nonsense": [1]}, ("nonsense",)),
    ({"mem_mib": [1.5]}, ("mem_mib", "int64", "float64")), ({"mem_mib": ["a"]}, ("mem_mib", "int64")),
    ({"gpu_util_pct": [[1, 2]]}, ("gpu_util_pct", "1 dimension")), ({"flags": [-1]}, ("flags", "-1")),
])
def test_a_wrong_column_is_named(horus, columns, words):
    with pytest.raises(horus.InvalidArgument) as caught:
        horus.demand_rows(**columns)
    for word in words:
        assert word in str(caught.value)


def test_errors_carry_their_status_through_pickling(horus):
    for error in (horus.NotFound("x", 4, "NOT_FOUND"), horus.InvalidArgument("y", 2, "INVALID_STRUCT"), horus.FileError("z")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.status, again.status_name) == (
            type(error), str(error), error.status, error.status_name)
        assert isinstance(again, horus.Error)


def test_gpus_are_a_table(horus):
    gpus = horus.gpus()
    assert "a100-40gb" in gpus.names and gpus["A100_40GB"].mem_mib == gpus[gpus.find("a100-40gb")].mem_mib
    with pytest.raises(horus.NotFound, match="a100"):
        gpus.find("a100-41gb")
    with pytest.raises(IndexError):
        gpus[len(gpus)]
    more = gpus.extend([horus.Gpu(name="ours", fp32_gflops=1000, fp16_gflops=2000, mem_mib=1024, mem_bandwidth_mb_s=1000,
                                  compute_capability=80, sm_count=10, boost_clock_mhz=1000, l2_kib=1, pcie_mb_s=1, tdp_w=1,
                                  architecture="Ampere", source="here")])
    assert more["ours"].mem_mib == 1024 and len(more) == len(gpus) + 1
    assert pickle.loads(pickle.dumps(more)).names == more.names
    assert "<table>" in gpus._repr_html_()
