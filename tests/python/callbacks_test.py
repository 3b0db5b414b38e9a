# SPDX-License-Identifier: Apache-2.0
"""Callables inside the library: what they raise, what they keep alive, what they may touch, and the interpreter's end."""

import gc
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest


class Raised(Exception):
    pass


class Calls:
    """Counts the calls of all its callables, and raises in one of them."""

    def __init__(self, raise_at=None):
        self.made, self.raise_at = 0, raise_at

    def count(self):
        self.made += 1
        if self.made == self.raise_at:
            raise Raised(self.made)

    def price(self, candidate):
        self.count()
        return float(candidate.mem_used_mib)

    def slow(self, device, tenants):
        self.count()
        return np.full(len(tenants), 1 + 0.1 * (len(tenants) - 1))

    def observe(self, *event):
        self.count()


def filled(make):
    cluster = make.cluster()
    for i in range(4):
        cluster.adopt(make.job(100 + i), [make.horus.Slot(i // 2 + 1, i % 2, 0)])
    return cluster


def play(horus, make, calls, placer):
    beliefs = {"a": make.demand(20, profile_id=1), "b": make.demand(50, profile_id=2)}
    trace = horus.Trace(profile=["a", "b"] * 4, duration_us=[1_000_000] * 8)
    return horus.simulate(trace, beliefs, horus.Truth.from_model(beliefs, calls.slow), make.cluster(), placer,
                          horus.SimOptions(learns="pairs", observe_us=1_000), observer=calls.observe)


WAYS = {
    "place": lambda horus, make, calls, placer: placer.place(filled(make), make.jobs(4)),
    "place_batch": lambda horus, make, calls, placer: placer.place_batch(filled(make), make.jobs(3), max_rounds=1),
    "preempt": lambda horus, make, calls, placer: placer.preempt(filled(make), make.job(9, priority=5, exclusive=True)),
    "explain": lambda horus, make, calls, placer: placer.explain(filled(make), make.job(9)),
    "what_if": lambda horus, make, calls, placer: placer.what_if(
        filled(make), [horus.Change(kind="release", job=100)], make.jobs(4)),
    "simulate": play,
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_raised_comes_back_from_whichever_call(horus, make, way):
    def run(calls):
        return WAYS[way](horus, make, calls, horus.Placer(calls.price, interference=calls.slow))

    calls = Calls()
    run(calls)
    assert calls.made > 3
    for at in {1, 2, calls.made // 2, calls.made - 1, calls.made}:
        with pytest.raises(Raised, match=f"^{at}$"):
            run(Calls(at))
        with pytest.raises(horus.NotFound):  # and nothing of it is left for a later call
            make.cluster().release(5)


def test_a_call_within_a_callback_raises_its_own(horus, make):
    inner, outer = Calls(1), []

    def price(candidate):
        with pytest.raises(Raised, match="^1$"):
            horus.Placer(Calls(1).price).place(make.cluster(), make.job(2))
        with pytest.raises(horus.NotFound):
            make.cluster().release(5)
        inner.count()

    for _ in range(2):
        with pytest.raises(Raised):
            horus.Placer(price).place(make.cluster(), make.job())
        outer.append(inner.made)
        inner.made = 0
    assert outer == [1, 1]


def owners(horus, make):
    """Objects of the library by name that own a callable which knows its owner."""
    def slow(owner):
        return lambda device, tenants: np.ones(len(tenants)) if owner else None

    def metered(owner):
        cluster = horus.Cluster()
        cluster.set_metrics(horus.Metrics(lambda level, line: owner))
        return cluster

    beliefs = {"a": make.demand()}
    trace = horus.Trace(profile=["a"], duration_us=[1_000_000])
    return {
        "policy": lambda owner: horus.Placer(lambda candidate: owner and 0.0),
        "model": lambda owner: horus.InterferenceModel.from_callable(slow(owner)),
        "placer of a model": lambda owner: horus.Placer(interference=slow(owner)),
        "truth": lambda owner: horus.Truth.from_model(beliefs, slow(owner)),
        "result": lambda owner: horus.simulate(trace, beliefs, horus.Truth.from_model(beliefs), make.cluster(),
                                               horus.Placer(interference=slow(owner)),
                                               horus.SimOptions(learns="pairs", observe_us=1_000)).model(),
        "metrics": lambda owner: horus.Metrics(lambda level, line: owner), "metered": metered,
    }


def test_callables_that_know_their_owner_are_collected_with_it(horus, make):
    class Owner:
        pass

    for name, build in owners(horus, make).items():
        owner = Owner()
        owner.owned = build(owner)
        seen = weakref.ref(owner)
        del owner
        gc.collect()
        assert seen() is None, name


def test_what_is_still_used_is_not_collected(horus, make):
    class Owner:
        def __init__(self):
            self.placer = horus.Placer(self.price)

        def price(self, candidate):
            gc.collect()
            return 0.0

    def place():
        placer = Owner().placer  # the owner lives by its method alone
        gc.collect()
        return placer.place(make.cluster(), make.job())

    assert place()[0].verdict == "place"


@pytest.mark.parametrize("metered", ["placer", "predictor", "cluster"])
def test_metrics_may_be_changed_while_other_threads_use_what_it_metrics(horus, make, resnet, metered):
    cluster, placer, predictor, job = make.cluster(), horus.Placer(), horus.Predictor(), make.job()
    predictor.predict(resnet, "t4")
    use = {"placer": lambda: placer.place(cluster, job), "predictor": lambda: predictor.predict(resnet, "t4"),
           "cluster": lambda: cluster.set_node_state(1, "up")}[metered]
    stop, heard = threading.Event(), []

    def call():
        while not stop.is_set():
            try:
                use()
            except horus.Busy:  # a placer of two threads
                pass

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for i in range(2_000):
            {"placer": placer, "predictor": predictor, "cluster": cluster}[metered].set_metrics(
                horus.Metrics(lambda level, line, i=i: heard.append(i), level="debug") if i % 2 else None)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    use()
    assert heard[-1] == 1_999
    {"placer": placer, "predictor": predictor, "cluster": cluster}[metered].set_metrics(None)
    count = len(heard)
    use()
    assert len(heard) == count


def test_of_metrics_set_at_once_the_one_that_is_told_lives(horus, make):
    class Log:
        def __call__(self, level, line):
            heard.append(self)

    cluster, job = make.cluster(), make.job()
    for _ in range(50):
        began, heard, logs = threading.Event(), [], []

        def price(candidate):
            if not began.is_set():
                began.set()
                time.sleep(0.004)  # the setters wait for this call
            return 0.0

        def metrics(placer=horus.Placer(price)):
            log = Log()
            logs.append(weakref.ref(log))
            placer.set_metrics(horus.Metrics(log, level="debug"))

        placer = metrics.__defaults__[0]
        threads = [threading.Thread(target=placer.place, args=(cluster, job))] + [threading.Thread(target=metrics) for _ in range(6)]
        threads[0].start()
        began.wait(30)
        for thread in threads[1:]:
            thread.start()
        for thread in threads:
            thread.join()
        heard.clear()
        placer.place(cluster, job)
        assert heard and {id(log) for log in heard} == {id(log()) for log in logs if log() is not None}


def test_who_sets_metrics_waits_for_calls_that_run_not_for_all_to_come(horus, make):
    cluster, stop = make.cluster(), threading.Event()

    def place():
        placer = horus.Placer(lambda candidate: time.sleep(0.002) or 0.0)
        while not stop.is_set():
            placer.place(cluster, make.jobs(4))

    threads = [threading.Thread(target=place, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    setter = threading.Thread(target=cluster.set_metrics, args=(None,), daemon=True)
    setter.start()
    setter.join(60)
    waits = setter.is_alive()
    stop.set()
    for thread in threads:
        thread.join()
    assert not waits


def test_a_log_may_not_take_away_who_hears_it(horus, make):
    placer, refused = horus.Placer(), []

    def log(level, line):
        try:
            placer.set_metrics(None)
        except horus.Busy:
            refused.append(line)

    placer.set_metrics(horus.Metrics(log, level="debug"))
    placer.place(make.cluster(), make.jobs(3))
    assert len(refused) == 4  # a line a decision, and one of the call


@pytest.mark.parametrize("meant_for_the_caller", [KeyboardInterrupt, SystemExit])
def test_a_log_does_not_swallow_ctrl_c(horus, make, meant_for_the_caller):
    cluster, told = make.cluster(), []

    def log(level, line):
        told.append(line)
        raise meant_for_the_caller

    cluster.adopt(make.job(100), [make.horus.Slot(1, 0, 0)])
    cluster.set_metrics(horus.Metrics(log, level="debug"))
    for change in (lambda: cluster.add_node(horus.Node(id=50)), lambda: cluster.set_node_state(50, "drained"),
                   lambda: cluster.set_node_state(1, "drained")):  # which asks twice, as a job is there
        with pytest.raises(meant_for_the_caller):
            change()
    cluster.set_metrics(None)
    assert [cluster.node(node)["state"] for node in (1, 50)] == ["drained"] * 2 and len(told) >= 3  # the calls were done


AT_THE_END = """
import sys, threading, time, numpy, horus
demand = horus.Demand(gpu_util_pct=20, mem_mib=1_000, step_time_us=1_000)
cluster = horus.Cluster([horus.Node(id=i, cpu_milli=64_000, mem_mib=262_144, devices=[horus.Device("t4")] * 8) for i in range(20)])
jobs = [horus.Job(id=i, demands={"any": demand}) for i in range(200)]
made = {
    "plain": horus.Placer, "policy": lambda: horus.Placer(lambda candidate: 0.0),
    "model": lambda: horus.Placer(interference=lambda device, tenants: numpy.ones(len(tenants))),
    "answer": lambda: horus.Placer(lambda candidate: Answer()),
    "progress": horus.Placer, "metrics": horus.Placer, "broken log": horus.Placer}[sys.argv[1]]

class Answer:
    def __float__(self):
        time.sleep(0.001)
        return 0.0

    def __del__(self):
        time.sleep(0.001)

def broken(level, line):
    raise ValueError

def place():
    placer = made()
    if sys.argv[1] in ("metrics", "broken log"):
        placer.set_metrics(horus.Metrics(broken if sys.argv[1] == "broken log" else lambda level, line: None, level="debug"))
    while True:
        placer.place(cluster, jobs, progress=(lambda share: None) if sys.argv[1] == "progress" else None)

for _ in range(4):
    threading.Thread(target=place, daemon=True).start()
time.sleep(0.3)
"""


@pytest.mark.parametrize("way", ["plain", "policy", "answer", "model", "progress", "metrics", "broken log"])
def test_daemon_threads_in_the_library_let_the_interpreter_end(horus, way):
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", AT_THE_END, way], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stderr == "" or way == "broken log"
