# SPDX-License-Identifier: Apache-2.0
"""Objects that nobody made, made into others, or changed under a call: exceptions, never the interpreter's end."""

import copy
import gc
import inspect
import threading

import numpy as np
import pytest


def classes(horus):
    from horus import _core

    return [kind for kind in vars(_core).values() if inspect.isclass(kind)]


def test_an_object_without_init_is_refused_wherever_it_is_used(horus):
    for kind in classes(horus):
        never = kind.__new__(kind)
        words = f"{kind.__name__}.__init__ was never called"
        uses = [getattr(never, name) for name in ("__repr__", "__len__", "to_dict", "replace", "info", "bytes_held", "calibration",
                                                  "all", "text") if callable(getattr(kind, name, None)) and name in vars(kind)]
        assert uses, kind
        for use in uses:
            with pytest.raises(TypeError, match=words):
                use()
        for field in getattr(kind, "__fields__", ()):
            with pytest.raises(TypeError, match=words):
                getattr(never, field)
        if "__eq__" in vars(kind):
            with pytest.raises(TypeError, match=words):
                kind() == never
            with pytest.raises(TypeError, match=words):
                copy.copy(never)
        with pytest.raises(TypeError):
            kind.__init__(never, object())  # and failing to be made leaves it so
        with pytest.raises(TypeError, match=words):
            uses[0]()
    gc.collect()


def test_as_an_argument_too(horus, make):
    never = horus.Job.__new__(horus.Job)
    for use in (lambda: horus.Placer().place(make.cluster(), never), lambda: horus.Placer().place(make.cluster(), [never]),
                lambda: horus.Change(spec=never), lambda: horus.Workload(jobs=[never])):
        with pytest.raises(TypeError, match="Job.__init__ was never called"):
            use()


def test_no_class_becomes_another(horus):
    kinds = classes(horus)
    for kind in kinds:
        never = kind.__new__(kind)
        for other in kinds:
            if other is not kind:
                with pytest.raises(TypeError, match="layout|deallocator"):
                    never.__class__ = other


def test_classes_are_final_as_their_stubs_say(horus):
    for kind in classes(horus):
        with pytest.raises(TypeError, match="acceptable base"):
            type("Sub", (kind,), {})


def test_a_switch_takes_true_or_false_alone(horus, make):
    with pytest.raises(TypeError, match="prices: expected bool, found"):
        horus.Placer().place_batch(make.cluster(), make.jobs(2), prices=-1)  # the C API's word for off


def test_a_list_may_change_while_the_library_waits(horus, make):
    cluster, placer, inside, go_on = make.cluster(), horus.Placer(), threading.Event(), threading.Event()

    def log(level, line):
        inside.set()
        go_on.wait(30)

    cluster.set_metrics(horus.Metrics(log, level="debug"))
    inside.clear()
    writer = threading.Thread(target=cluster.set_node_state, args=(1, "up"))
    jobs, plans = make.jobs(100), []
    reader = threading.Thread(target=lambda: plans.append(placer.place(cluster, jobs)))
    writer.start()
    inside.wait(30)
    reader.start()  # waits for the writer, whose log waits
    reader.join(0.3)
    jobs.clear()
    others = [make.job(10_000 + i) for i in range(1_000)]  # where the jobs were
    go_on.set()
    writer.join()
    reader.join()
    assert sorted(decision.job for decision in plans[0]) == list(range(1, 101)) and len(others) == 1_000


def test_a_model_may_write_to_the_rows_that_it_is_asked_about(horus, make):
    rows = horus.demand_rows([make.demand(profile_id=i + 1) for i in range(4)]).reshape(2, 2)

    def model(device, tenants):
        rows["struct_size"] = 4_096  # of rows to come: the library would read so far
        return np.full(len(tenants), 1.5)

    assert (horus.InterferenceModel.from_callable(model).slowdown("t4", rows).estimate == 1.5).all()


def test_what_a_value_raises_when_asked_for_its_number_comes_back(horus):
    class Asked:
        def __init__(self, error):
            self.error = error

        def __index__(self):
            raise self.error

        __float__ = __index__

    for field in ("id", "slowdown_bound"):
        for error in (KeyboardInterrupt, MemoryError, ZeroDivisionError):
            with pytest.raises(error):
                horus.Job(**{field: Asked(error())})
        with pytest.raises(TypeError, match=f"Job.{field}: expected"):
            horus.Job(**{field: Asked(TypeError())})
    with pytest.raises(horus.InvalidArgument, match="Job.slowdown_bound: expected a number"):
        horus.Job(slowdown_bound=10**400)


def test_text_that_utf8_cannot_write_is_shown_and_refused(horus):
    class Odd:
        def __repr__(self):
            return "\ud800"

    with pytest.raises(TypeError, match=r"Job.id: expected int, found \\ud800"):
        horus.Job(id=Odd())
    with pytest.raises(horus.InvalidArgument, match="Job: name: expected text that UTF-8 can write"):
        horus.Job(**{"\ud800": 1})


def test_a_state_that_changes_while_it_is_read_is_refused(horus):
    class Clears:
        def __init__(self, state):
            self.state = state

        def __index__(self):
            self.state.clear()
            raise TypeError

    state = horus.Job(id=1).to_dict()
    state["id"] = Clears(state)
    with pytest.raises(TypeError, match="Job.id: expected int"):
        horus.Job.__new__(horus.Job).__setstate__(state)


def test_an_object_made_by_one_of_its_own_arguments_stays_as_it_was_made(horus):
    class Makes:
        def __init__(self, job, make):
            self.job, self.make = job, make

        def __index__(self):
            self.make(self.job)
            return 7

    for make in (lambda job: job.__init__(id=5), lambda job: job.__setstate__({"id": 5})):
        job = horus.Job.__new__(horus.Job)
        job.__init__(id=Makes(job, make))
        assert job.id == 5
        other = horus.Job.__new__(horus.Job)
        other.__setstate__({"id": Makes(other, make)})
        assert other.id == 5
    del job, other
    gc.collect()


def test_none_is_no_graph(horus):
    from horus import _core

    with pytest.raises((TypeError, RuntimeError)):
        _core.PredictorHandle().predict_rows(None, [None], [horus.RunSpec()], ["t4"], None)


@pytest.mark.parametrize("slip, words", [
    (lambda horus: horus.Placers, "has no attribute 'Placers'; did you mean 'Placer'?"),
    (lambda horus: horus.Graph("resnet50.onnx"), "a Graph is made by Graph.from_onnx"),
    (lambda horus: horus.Truth("speeds.json"), "a Truth is made by Truth.from_model"),
    (lambda horus: horus.Placer(polcy="horus"), "has no field 'polcy'; it has policy"),
    (lambda horus: horus.Placer(policy="horsu"), "found 'horsu'; did you mean 'horus'?"),
    (lambda horus: horus.Placer(slowdown_bound="1.5"), "slowdown_bound: expected float, found '1.5' (str)"),
    (lambda horus: horus.Job(id=1, kind="train"), "found 'train' (str); did you mean 'training'?"),
    (lambda horus: horus.Job(id="a"), "Job.id: expected int, found 'a' (str)"),
    (lambda horus: horus.RunSpec(precision="fp15"), "found 'fp15' (str); did you mean 'fp16'?"),
    (lambda horus: horus.Placer().place(horus.Job(id=1), horus.Cluster()), "cluster: expected Cluster, found Job"),
    (lambda horus: horus.RunSpec(batchsize=64), "RunSpec has no field 'batchsize'; it has mode, precision, optimizer, batch,"),
    (lambda horus: horus.RunSpec(optimizer="Adam"), "RunSpec.optimizer: expected one of 'sgd',"),
    (lambda horus: horus.RunSpec(dims=[("seq", 128)]), "RunSpec.dims: expected a mapping, found [('seq', 128)] (list)"),
    (lambda horus: horus.Job(id=1, slowdown=1.5), "did you mean 'slowdown_bound'?"),
    (lambda horus: horus.Demand(gpu_util_pct=50, mem_gib=4), "did you mean 'mem_mib'?"),
    (lambda horus: horus.Demand(gpu_util_pct=150), "Demand.gpu_util_pct: expected 0 to 100, found 150"),
    (lambda horus: horus.Node(id=1, devices=["t4"]), "Node.devices[0]: expected Device, found 't4' (str)"),
    (lambda horus: horus.Cluster([horus.Node(id=1, devices=[horus.Device("a100-80")])]), "found 'a100-80'; nearest: a100-80gb"),
    (lambda horus: horus.Cluster().add_node({"id": 1}), "node: expected Node, found {'id': 1} (dict)"),
    (lambda horus: horus.Cluster().set_node_state(1, "drain"), "expected one of 'up', 'drained', 'down', found 'drain' (str); did you mean 'drained'?"),
    (lambda horus: horus.Cluster().release(99), "job 99: not in this cluster"),
    (lambda horus: horus.Placer().place(horus.Cluster(), horus.Job(id=1)), "jobs[0]: job 1: demands: expected 1 to 4096, found 0"),
    (lambda horus: horus.InterferenceModel("utilization"), "found 'utilization'; did you mean 'utilisation'?"),
    (lambda horus: horus.Queue("fifo", patience_s=5), "did you mean 'patience_us'?"),
    (lambda horus: horus.Queue("fifo").push(horus.Job(id=1)), "job: expected QueuedJob, found Job(id=1) (Job)"),
    (lambda horus: horus.Trace.synthetic("philly", n_jobs=20), "did you mean 'jobs'?"),
    (lambda horus: horus.Trace.from_file("no-such.csv"), "no-such.csv: cannot open: No such file"),
    (lambda horus: horus.Graph.from_onnx("no-such.onnx"), "ONNX file 'no-such.onnx': cannot open: No such file"),
])
def test_a_natural_mistake_is_answered_with_what_was_meant(horus, slip, words):
    with pytest.raises((TypeError, AttributeError, ValueError, horus.Error)) as said:
        slip(horus)
    assert words in str(said.value) and "\n" not in str(said.value)
