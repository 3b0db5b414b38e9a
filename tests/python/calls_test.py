# SPDX-License-Identifier: Apache-2.0
"""Long calls: the lock is released, threads share what may be shared, Ctrl-C and progress stop them, nothing changed."""

import concurrent.futures
import signal
import threading
import time

import pytest


def test_eight_threads_share_predictor_and_graph(horus, predictor, resnet):
    runs = [horus.RunSpec(batch=b) for b in range(1, 9)]
    expected = [predictor.predict(resnet, ["t4", "a100-40gb"], run) for run in runs]
    fresh = horus.Predictor()

    def ask(thread):
        return [fresh.predict(resnet, ["t4", "a100-40gb"], runs[(thread + i) % 8]) == expected[(thread + i) % 8]
                for i in range(24)]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(all(answers) for answers in pool.map(ask, range(8)))


def test_eight_threads_place_on_one_cluster(horus, make):
    cluster = make.cluster(nodes=8, devices=4)

    def place(thread):
        placer, done = horus.Placer(), 0
        for i in range(12):
            job = make.job(1 + thread * 100 + i, util=20, mem=1_000)
            while True:
                plan = placer.place(cluster, job)
                try:
                    cluster.apply(plan)
                    done += plan[0].verdict == "place"
                    break
                except horus.Conflict:
                    continue
        return done

    def grow():
        for i in range(20):
            cluster.add_node(horus.Node(id=100 + i, cpu_milli=1))

    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        grown = pool.submit(grow)
        assert sum(pool.map(place, range(8))) == len(cluster.jobs)
        grown.result()
    assert len(cluster.nodes) == 28


def test_eight_threads_add_to_the_same_observations(horus, make):
    seen, beside = horus.Observations(), [make.demand(60, profile_id=99)]

    def add(thread):
        for i in range(100):
            seen.add_slowdown("t4", make.demand(profile_id=thread + 1), beside, 1.5, predicted=1.4, predicted_upper=2.0,
                              device_id=thread * 1_000 + i + 1)
            seen.calibration(), seen.devices(), seen.to_bytes()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(8)))
    assert seen.calibration()["predictions"] == 800 and len(seen.devices()["times"]) == 800


def long_call(horus, make, progress=None):
    cluster, jobs = make.cluster(nodes=190, devices=8), make.jobs(1_500)  # room for all
    before = cluster.snapshot()
    placer = horus.Placer()
    return cluster, before, lambda: placer.place_batch(cluster, jobs, max_rounds=10_000, restarts=10_000,
                                                       max_evaluations=10**15, progress=progress)


def test_other_threads_run_meanwhile(horus, make):
    stop = threading.Event()
    _, _, call = long_call(horus, make, lambda share: not stop.is_set())
    ticks = []

    def tick():
        for _ in range(20):
            ticks.append(time.monotonic())
            time.sleep(0.01)
        stop.set()

    thread = threading.Thread(target=tick)
    thread.start()
    with pytest.raises(horus.Cancelled):
        call()
    thread.join()
    assert len(ticks) == 20


@pytest.fixture
def ctrl_c():
    """Comes after a moment. What runs in the background of a shell ignores it, and Python then, too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    thread.start()
    yield
    thread.join()
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_stops_a_long_call_and_changes_nothing(horus, make, request):
    cluster, before, call = long_call(horus, make)
    request.getfixturevalue("ctrl_c")
    with pytest.raises(KeyboardInterrupt):
        call()
    assert cluster.snapshot() == before


@pytest.mark.parametrize("call", ["rebalance", "preempt"])
def test_ctrl_c_stops_what_tells_no_share(horus, make, request, call):
    cluster, placer = make.cluster(nodes=150, devices=8), horus.Placer()
    for i in range(1_200):
        cluster.adopt(make.job(1 + i, util=90, mem=15_000), [horus.Slot(1 + i // 8, i % 8, 0)])
    before = cluster.snapshot()
    urgent = make.job(10_000, util=90, mem=15_000).replace(priority=9, tasks=1_000, exclusive=True)
    request.getfixturevalue("ctrl_c")
    with pytest.raises(KeyboardInterrupt):
        while True:  # each may be over before
            placer.rebalance(cluster, max_migrations=10**6) if call == "rebalance" else placer.preempt(cluster, urgent)
    assert cluster.snapshot() == before


def test_ctrl_c_stops_a_simulation_at_its_next_event(horus, make, request):
    trace = horus.Trace(profile=["a"] * 200_000, duration_us=[10_000_000] * 200_000)
    beliefs = {"a": make.demand()}
    truth, cluster = horus.Truth.from_model(beliefs), make.cluster(nodes=30, devices=8)
    request.getfixturevalue("ctrl_c")
    with pytest.raises(KeyboardInterrupt):
        horus.simulate(trace, beliefs, truth, cluster, horus.Placer("first-fit"))


def test_progress_is_told_and_what_it_raises_comes_back(horus, make):
    told = []

    class Enough(Exception):
        pass

    def tell(share):
        told.append(share)
        if len(told) == 3:
            raise Enough

    cluster, before, call = long_call(horus, make, tell)
    with pytest.raises(Enough):
        call()
    assert len(told) == 3 and told == sorted(told) and cluster.snapshot() == before


def test_a_bar_where_tqdm_is_installed(horus, make, capsys):
    pytest.importorskip("tqdm")
    horus.Placer().place(make.cluster(), make.jobs(3), progress=True)
    assert "place" in capsys.readouterr().err
    with pytest.raises(TypeError, match="progress"):
        horus.Placer().place(make.cluster(), make.jobs(3), progress=3)
