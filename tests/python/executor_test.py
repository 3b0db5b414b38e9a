# SPDX-License-Identifier: Apache-2.0
"""Grids by executors: the figures do not tell who ran them, errors name their cell, nothing hangs."""

import concurrent.futures
import functools
import multiprocessing
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

HOUR = 3_600_000_000
SOON_S = 20  # of what must not hang; whole it takes many minutes


def grid_of(horus, jobs=60, seeds=3):
    demands = {"small": horus.Demand(gpu_util_pct=20, mem_mib=2_000, mem_bw_util_pct=10, step_time_us=100_000, profile_id=1),
               "large": horus.Demand(gpu_util_pct=80, mem_mib=6_000, mem_bw_util_pct=40, step_time_us=100_000, profile_id=2)}
    nodes = [horus.Node(id=i, cpu_milli=64_000, mem_mib=262_144, devices=[horus.Device("v100-pcie-16gb")] * 2) for i in (1, 2)]
    traces = []
    for seed in range(seeds):
        draw = np.random.default_rng(seed)
        traces.append(horus.Trace(profile=draw.choice(list(demands), jobs).tolist(), duration_us=draw.integers(1, HOUR, jobs),
                                  submit_us=np.sort(draw.integers(0, HOUR, jobs))))
    placers = {name: horus.Placer(name) for name in ("exclusive", "random", "horus")}
    return traces, demands, horus.Truth.from_model(demands), horus.Cluster(nodes), placers


def face(comparison):
    """All of it, but for the times of this machine's clock."""
    results = [result for _, found in comparison.items() for result in found]
    return "\n".join([repr(comparison), str(comparison), comparison.to_frame().to_csv(), repr(comparison.summary), *(
        repr([result.metrics(), result.backlog_work.tobytes(), [(name, values.tobytes()) for name, values in result.jobs.items()]])
        for result in results)]).encode()


class Backwards(concurrent.futures.Executor):
    """Runs what it was given last first."""

    def __init__(self, count):
        self.count, self.work = count, []

    def submit(self, function, /, *arguments, **keywords):
        self.work.append((concurrent.futures.Future(), functools.partial(function, *arguments, **keywords)))
        if len(self.work) == self.count:
            threading.Thread(target=self.run).start()
        return self.work[-1][0]

    def run(self):
        for future, call in reversed(self.work):
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except Exception as error:
                    future.set_exception(error)


def processes(count, start="spawn"):
    return concurrent.futures.ProcessPoolExecutor(count, multiprocessing.get_context(start))


@pytest.fixture(scope="module")
def grid(horus):
    return grid_of(horus)


@pytest.fixture(scope="module")
def alone(horus, grid):
    return face(horus.compare(*grid))


@pytest.mark.parametrize("executor", [
    lambda: concurrent.futures.ThreadPoolExecutor(1), lambda: concurrent.futures.ThreadPoolExecutor(4), lambda: Backwards(9),
    lambda: processes(1), lambda: processes(2), lambda: processes(2, "fork")], ids=[
    "one thread", "four threads", "backwards", "a process", "two processes", "two forked"])
def test_figures_are_the_same_to_the_byte(horus, grid, alone, executor):
    with executor() as runs:
        told = []
        assert face(horus.compare(*grid, executor=runs, progress=told.append)) == alone
    assert told == sorted(told) and told[-1] == 1


def test_each_cell_is_the_simulation_that_it_says(horus, grid):
    traces, demands, truth, cluster, placers = grid
    with concurrent.futures.ThreadPoolExecutor(2) as runs:
        found = horus.compare(*grid, executor=runs)
    for name, results in found.items():
        for trace, result in zip(traces, results):
            assert result.metrics() == horus.simulate(trace, demands, truth, cluster, placers[name],
                                                       horus.SimOptions(look_ahead=50)).metrics()


def test_own_gpu_types_go_along(horus, grid):
    traces, demands, *_ = grid
    own = horus.Catalogue().extend([horus.Gpu(name="own", fp32_gflops=40_000, fp16_gflops=80_000, mem_mib=49_152,
                                              mem_bandwidth_mb_s=900_000, compute_capability=86, sm_count=80, boost_clock_mhz=1_700,
                                              l2_kib=6_144, pcie_mb_s=31_500, tdp_w=300, architecture="Ampere", source="made up")])
    cluster = horus.Cluster([horus.Node(id=1, cpu_milli=64_000, mem_mib=262_144, devices=[horus.Device("own")] * 4)], catalogue=own)
    rest = (traces, demands, horus.Truth.from_model(demands, catalogue=own), cluster, {"horus": horus.Placer(catalogue=own)})
    with processes(1) as runs:
        assert face(horus.compare(*rest, executor=runs)) == face(horus.compare(*rest))


def test_dask(horus, grid, alone):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: grids by Dask are untested")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as local:
        with distributed.Client(local) as client:
            assert face(horus.compare(*grid, executor=client.get_executor())) == alone
            assert face(horus.compare(*grid, executor=client)) == alone
            traces, *rest = grid
            with pytest.raises(horus.NotFound, match="policy 'exclusive', trace 0: queue: expected one of"):
                horus.compare(traces, *rest, horus.SimOptions(queue="nonsense"), executor=client.get_executor())


def test_ray(horus, grid, alone):
    ray = pytest.importorskip("ray", reason="ray is not installed: grids by Ray are untested")

    class Ray(concurrent.futures.Executor):
        def submit(self, function, /, *arguments):
            return ray.remote(function).remote(*arguments).future()

    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, _node_ip_address="127.0.0.1")
    try:
        assert face(horus.compare(*grid, executor=Ray())) == alone
        with pytest.raises(horus.NotFound) as caught:
            horus.compare(*grid, horus.SimOptions(queue="nonsense"), executor=Ray())
        assert "trace 0" in " ".join(getattr(caught.value, "__notes__", ["trace 0"]))
    finally:
        ray.shutdown()


def test_loky(horus, grid, alone):
    loky = pytest.importorskip("loky", reason="loky is not installed: grids by joblib's executor are untested")
    with loky.ProcessPoolExecutor(2) as runs:
        assert face(horus.compare(*grid, executor=runs)) == alone


def test_mpi(alone, tmp_path):
    pytest.importorskip("mpi4py", reason="mpi4py is not installed: grids by MPI are untested")
    program = shutil.which("mpiexec", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]))
    if program is None:
        pytest.skip("no mpiexec: grids by MPI are untested")
    script = tmp_path / "by_mpi.py"
    script.write_text(f"""import pathlib, sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import executor_test, horus
from mpi4py.futures import MPIPoolExecutor
if __name__ == "__main__":
    with MPIPoolExecutor() as runs:
        assert runs.num_workers == 2
        found = horus.compare(*executor_test.grid_of(horus), executor=runs)
    pathlib.Path({str(tmp_path / "found")!r}).write_bytes(executor_test.face(found))
""")
    # Open MPI wants to be told that it may run as root, and more processes than cores.
    told = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    subprocess.run([program, "-n", "3", sys.executable, "-m", "mpi4py.futures", str(script)], env={**os.environ, **told},
                   check=True, timeout=120)
    assert (tmp_path / "found").read_bytes() == alone


def test_tasks_are_small(horus):
    sizes = []

    class Threads(concurrent.futures.ThreadPoolExecutor):
        def submit(self, function, /, *arguments):
            sizes.append(len(pickle.dumps(arguments)))
            return super().submit(function, *arguments)

    class Processes(concurrent.futures.ProcessPoolExecutor):
        def submit(self, function, /, *arguments):
            sizes.append(len(pickle.dumps(arguments)))
            return super().submit(function, *arguments)

    jobs = 20_000
    trace = horus.Trace.synthetic("philly", jobs=jobs)
    _, demands, truth, cluster, placers = grid_of(horus, 10, 1)
    for kind, most in ((Threads, 20 * jobs), (Processes, 1_000)):
        with kind(1) as runs, pytest.raises(horus.Error):  # no such profiles: it ends at once
            horus.compare(trace, demands, truth, cluster, placers, executor=runs)
        assert len(sizes) == 3 and max(sizes) < most, sizes
        sizes.clear()


@pytest.mark.parametrize("executor", [None, lambda: Backwards(9), lambda: concurrent.futures.ThreadPoolExecutor(4),
                                      lambda: processes(2)], ids=["none", "backwards", "threads", "processes"])
def test_the_first_cell_of_the_grid_that_fails_is_named(horus, grid, executor):
    (first, second, third), *rest = grid
    unknown = second.replace(profile=["unheard-of"] * len(second))
    for how, words in ((None, "policy 'exclusive', trace 1: .*unheard-of"),
                       ({"exclusive": None, "random": None, "horus": horus.SimOptions(queue="nonsense")}, "")):
        traces = [first, unknown if how is None else second, third]
        with pytest.raises(horus.Error, match=words or "policy 'horus', trace 0: queue: expected one of"):
            if executor is None:
                horus.compare(traces, *rest, how)
            else:
                with executor() as runs:
                    horus.compare(traces, *rest, how, executor=runs)


def test_a_pool_serves_on_after_an_error(horus, grid, alone):
    with processes(2) as runs:
        with pytest.raises(horus.NotFound):
            horus.compare(*grid, horus.SimOptions(queue="nonsense"), executor=runs)
        with pytest.raises(horus.Cancelled):
            horus.compare(*grid, executor=runs, progress=lambda done: False)
        assert face(horus.compare(*grid, executor=runs)) == alone


def broken(candidate):
    raise KeyError("broken")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have no notes: those of strangers name no cell")
def test_errors_of_strangers_come_back_as_themselves_with_a_note(horus, grid):
    traces, *rest, placers = grid
    mine = {"horus": placers["horus"], "mine": horus.Placer(broken)}
    with concurrent.futures.ThreadPoolExecutor(2) as runs:
        for how in (None, runs):
            with pytest.raises(KeyError, match="broken") as caught:
                horus.compare(traces, *rest, mine, executor=how)
            assert caught.value.__notes__ == ["horus.compare: policy 'mine', trace 0"]
    with processes(1) as runs, pytest.raises(Exception, match="(?i)pickle") as caught:
        horus.compare(traces, *rest, {"lambda": horus.Placer(lambda candidate: 0.0)}, executor=runs)
    assert caught.value.__notes__ == ["horus.compare: policy 'lambda', trace 0"]


def test_threads_run_what_cannot_be_pickled(horus, grid, alone):
    traces, *rest, _ = grid
    placers = {"mine": horus.Placer(lambda candidate: float(len(candidate.demands)))}
    with concurrent.futures.ThreadPoolExecutor(2) as runs:
        assert face(horus.compare(traces, *rest, placers, executor=runs)) == face(horus.compare(traces, *rest, placers))


def test_a_worker_of_another_version_is_refused(horus, grid, monkeypatch):
    core = sys.modules["horus._core"]
    answers = iter(["0.0.1"] * 9)
    monkeypatch.setattr(core, "version", lambda: next(answers, "9.9.9"))
    with Backwards(9) as runs, pytest.raises(horus.StateError, match=r"worker: expected libhorus 0\.0\.1.*, found 9\.9\.9"):
        horus.compare(*grid, executor=runs)


def test_what_is_no_executor_is_refused(horus, grid):
    with pytest.raises(TypeError, match="executor: expected one of concurrent.futures or None, found 2"):
        horus.compare(*grid, executor=2)
    shut = concurrent.futures.ThreadPoolExecutor(1)
    shut.shutdown()
    with pytest.raises(RuntimeError, match="shutdown"):
        horus.compare(*grid, executor=shut)


LONG = """import concurrent.futures, multiprocessing, os, sys, time
sys.path.insert(0, {tests!r})
import executor_test, horus

def slow(candidate):
    time.sleep(0.02)
    return 0.0

def dies(candidate):
    os._exit(3)

def going(done):
    if not os.path.exists("begun"):
        open("begun", "x").close()
    return not os.path.exists("enough")

if __name__ == "__main__":
    who, policy = sys.argv[1:]
    traces, *rest, _ = executor_test.grid_of(horus, 3000, 4)
    with executor_test.processes(2) if who == "processes" else concurrent.futures.ThreadPoolExecutor(2) as runs:
        horus.compare(traces, *rest, {{"slow": horus.Placer(globals()[policy])}}, executor=runs, progress=going)
"""


def members(group):
    """Processes of a group that run: not those whose end nobody has asked for yet."""
    found = []
    for file in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of = file.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # it has just ended
            continue
        if int(of) == group and state != "Z":
            found.append(int(file.parent.name))
    return found


@pytest.fixture
def long_grid(horus, tmp_path):
    """Begins a grid that takes many minutes, in a process group of its own."""
    (tmp_path / "long.py").write_text(LONG.format(tests=str(pathlib.Path(__file__).parent)))
    begun = []

    def begin(who, policy="slow"):
        (tmp_path / "temporary").mkdir()
        begun.append(subprocess.Popen([sys.executable, "long.py", who, policy], cwd=tmp_path, start_new_session=True, text=True,
                                      stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path / "temporary")}))
        until = time.monotonic() + SOON_S
        while not (tmp_path / "begun").exists() and time.monotonic() < until:
            time.sleep(0.05)
        return begun[0]

    yield begin
    until = time.monotonic() + SOON_S
    for process in begun:
        while members(process.pid) and time.monotonic() < until:
            time.sleep(0.05)
        left = members(process.pid)
        for one in left:
            os.kill(one, signal.SIGKILL)
        assert not left, "workers were left behind"


@pytest.mark.parametrize("after_s", [0, 0.5])
@pytest.mark.parametrize("who", ["threads", "processes"])
@pytest.mark.parametrize("whom", ["all", "the parent"])
def test_ctrl_c_ends_soon_and_leaves_nothing(long_grid, tmp_path, who, whom, after_s):
    process = long_grid(who)
    time.sleep(after_s)  # workers begin, or simulate
    (os.killpg if whom == "all" else os.kill)(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=SOON_S)
    assert "KeyboardInterrupt" in said and list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize("who", ["threads", "processes"])
def test_a_progress_that_answers_false_ends_soon(long_grid, tmp_path, who):
    process = long_grid(who)
    (tmp_path / "enough").touch()
    _, said = process.communicate(timeout=SOON_S)
    assert "Cancelled: compare: cancelled by its progress callback" in said and list((tmp_path / "temporary").iterdir()) == []


def test_a_worker_that_dies_is_an_error_that_names_a_cell(long_grid):
    _, said = long_grid("processes", "dies").communicate(timeout=SOON_S)
    assert "BrokenProcessPool" in said
    if sys.version_info >= (3, 11):
        assert "horus.compare: policy 'slow', trace 0" in said
