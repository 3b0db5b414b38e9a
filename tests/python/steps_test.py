# SPDX-License-Identifier: Apache-2.0
"""Step times that a job tells. The clock is the test's own, in seconds; what is served is read over HTTP."""

import copy
import itertools
import logging
import os
import pathlib
import pickle
import shutil
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "bindings/python/src/horus/steps.py"


@pytest.fixture(scope="module")
def steps_module():
    return pytest.importorskip("horus.steps")


@pytest.fixture
def clock(steps_module, monkeypatch):
    return Clock(steps_module, monkeypatch)


class Clock:
    def __init__(self, module, monkeypatch):
        self.ns = 5_000_000_000
        monkeypatch.setattr(module, "_clock", lambda: self.ns)

    def passes(self, seconds):
        self.ns += round(seconds * 1e9)


@pytest.fixture
def make(steps_module, clock, monkeypatch):
    """Makes recorders without a warm-up that serve on any free port, and closes them."""
    monkeypatch.delenv("RANK", raising=False)
    made = []

    def one(**fields):
        made.append(steps_module.Steps(**{"port": 0, "warmup": 0, **fields}))
        return made[-1]

    yield one
    for steps in made:
        steps.close()


def scrape(steps, path="/metrics"):
    with urllib.request.urlopen(f"http://127.0.0.1:{steps.port}{path}", timeout=30) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return answer.read().decode()


def values(text):
    """{name: value}, as Prometheus itself reads the text."""
    parser = pytest.importorskip("prometheus_client.parser", reason="prometheus-client is not installed: the text is not parsed")
    families = list(parser.text_string_to_metric_families(text))
    assert all(family.documentation for family in families)
    return {sample.name: sample.value for family in families for sample in family.samples}


def run(program, *arguments, **variables):
    return subprocess.run([sys.executable, *arguments, "-c", program], capture_output=True, text=True, check=False,
                          env={**os.environ, **variables})


@pytest.mark.parametrize(("job", "port"), [("", 9401), ("123_4", 9401), ("7", 20_007), ("991234", 21_234)])
def test_jobs_of_slurm_have_a_port_each(steps_module, monkeypatch, job, port):
    monkeypatch.setenv("SLURM_JOB_ID", job)
    assert steps_module.Steps()._settings["port"] == port
    assert steps_module.Steps(8000)._settings["port"] == 8000


def test_the_time_between_marks_is_a_step_each(make, clock):
    steps = make()
    for seconds in (7, 0.25, 0.5, 0.125):  # before the first mark there is no step
        clock.passes(seconds)
        steps.mark()
    assert (steps.count, steps.seconds) == (3, 0.875)
    assert repr(steps) == "<horus.steps.Steps: 3 steps of 0.292 s>"


def test_first_steps_are_left_out_with_their_samples(make, clock):
    steps = make(warmup=2, samples=8)
    for seconds in (0, 60, 30, 1, 1):
        clock.passes(seconds)
        steps.mark()
    assert (steps.count, steps.seconds) == (2, 2.0)
    assert "horus_job_samples_total 16\n" in steps.text()


def test_pauses_are_no_part_of_a_step(make, clock):
    steps = make()
    steps.pause()  # of nothing
    clock.passes(9)
    steps.mark()
    clock.passes(0.25)
    with pytest.raises(RuntimeError), steps.paused():
        clock.passes(100)
        raise RuntimeError("of the evaluation")
    clock.passes(0.25)
    steps.mark()
    steps.pause()
    clock.passes(100)
    steps.pause()
    clock.passes(100)
    steps.resume()
    steps.resume()
    clock.passes(1)
    steps.mark()
    clock.passes(2)
    steps.pause()
    clock.passes(100)
    steps.mark()  # ends the pause
    clock.passes(4)
    steps.mark()
    assert (steps.count, steps.seconds) == (4, 7.5)


def test_a_block_is_a_step_unless_it_raises(make, clock):
    steps = make()
    with steps.step():
        clock.passes(0.5)
    clock.passes(9)
    with pytest.raises(RuntimeError, match="of the step"), steps.step():
        clock.passes(3)
        raise RuntimeError("of the step")
    with steps.step(samples=3):
        clock.passes(0.25)
    assert (steps.count, steps.seconds) == (2, 0.75)
    assert "horus_job_samples_total 3\n" in steps.text()


def test_prometheus_reads_what_is_served(make, clock):
    steps = make(samples=64)
    for seconds in (0, 0.01, 0.04):
        clock.passes(seconds)
        steps.mark()
    clock.passes(2**30)  # seconds, 34 years: exact to the nanosecond
    steps.mark(samples=1)
    found = values(scrape(steps))
    assert found.pop("horus_job_start_time_seconds") == pytest.approx(steps._began, abs=0.001)
    assert found == {"horus_job_step_seconds_sum": 2**30 + 0.05, "horus_job_step_seconds_count": 3, "horus_job_samples_total": 129}
    assert "# TYPE horus_job_step_seconds summary\nhorus_job_step_seconds_sum 1073741824.050000000\n" in scrape(steps, "/")


def test_samples_that_nobody_told_are_not_served(make, clock):
    steps = make()
    steps.mark()
    steps.mark()
    assert "samples" not in scrape(steps)


def test_a_job_that_starts_again_is_seen(make, steps_module, monkeypatch):
    starts = []
    for now in (1_000.25, 2_000.5):
        monkeypatch.setattr(steps_module.time, "time", lambda now=now: now)
        steps = make()
        steps.mark()
        starts.append(values(scrape(steps))["horus_job_start_time_seconds"])
        steps.close()
    assert starts == [1_000.25, 2_000.5]


def test_another_path_is_not_found(make):
    steps = make()
    steps.mark()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        scrape(steps, "/secrets")
    assert "count 0" in scrape(steps, "/metrics?name=any")


def test_it_listens_from_the_first_step_until_it_is_closed(make):
    marked, in_block = make(), make()
    assert (marked.port, in_block.port) == (None, None)
    marked.mark()
    port = marked.port
    with in_block.step():
        assert "count 0" in scrape(in_block)
    marked.close()
    marked.close()
    marked.mark()
    assert marked.port is None and marked.count == 1
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=30)


def test_ipv6_is_served_where_there_is_any(make):
    if not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here: its address is not tried")
    steps = make()
    steps.mark()
    with socket.create_connection(("::1", steps.port), timeout=30) as talk:
        talk.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert talk.recv(15) == b"HTTP/1.0 200 OK"


def test_a_port_that_is_taken_is_told_once_and_training_goes_on(make, clock, caplog):
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        steps = make(port=port)
        with caplog.at_level(logging.WARNING, "horus.steps"):
            for _ in range(3):
                clock.passes(1)
                steps.mark()
    (record,) = caplog.records
    assert f"port {port}: expected to serve step times there, found OSError: " in record.getMessage()
    assert "Address already in use" in record.getMessage()
    assert (steps.count, steps.seconds, steps.port) == (2, 2.0, None)


def test_a_log_that_raises_does_not_reach_the_loop(make, monkeypatch):
    class Broken(logging.Handler):
        def emit(self, record):
            raise RuntimeError("of the log")

    broken = Broken()
    monkeypatch.setenv("RANK", "first")
    logging.getLogger("horus.steps").addHandler(broken)
    try:
        steps = make()
        steps.mark()
        steps.mark(samples="many")
    finally:
        logging.getLogger("horus.steps").removeHandler(broken)
    assert steps.count == 1 and steps.port is None


def test_wrong_samples_are_told_once_and_the_step_counts(make, clock, caplog):
    steps = make(samples=4)
    steps.mark()
    for samples in (-1, 2.5, None, True):
        clock.passes(1)
        steps.mark(samples)
    assert steps.seconds == 4 and "horus_job_samples_total 5\n" in steps.text()
    (record,) = caplog.records
    assert "samples: expected a whole number >= 0, found -1" in record.getMessage()


@pytest.mark.parametrize(("fields", "words"), [
    ({"port": 65_536}, "port: expected a whole number from 0 to 65535, found 65536"), ({"port": "9401"}, "port: .*found '9401'"),
    ({"warmup": -1}, "warmup: .*found -1"), ({"samples": 1.5}, "samples: .*found 1.5")])
def test_wrong_settings_are_named_before_training(steps_module, fields, words):
    with pytest.raises(ValueError, match=words):
        steps_module.Steps(**fields)


def test_a_scrape_that_breaks_off_disturbs_nobody(make, capfd):
    steps = make()
    steps.mark()
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", steps.port), timeout=30) as talk:
            talk.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # ends by a reset
            talk.sendall(b"GET /metrics HTTP/1.0\r\nX: ")
    assert "count 0" in scrape(steps)
    assert capfd.readouterr().err == ""


def test_threads_count_together_and_lose_no_step(make, steps_module, monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(steps_module, "_clock", lambda: next(ticks))  # ns
    steps, each, at_once = make(samples=2), 2_000, 8
    steps.mark()
    first, seen, done = steps._last, [], threading.Event()

    def work():
        for _ in range(each):
            steps.mark()

    def watch():
        while not done.is_set():
            seen.append(steps._total)

    workers = [threading.Thread(target=work) for _ in range(at_once)]
    watcher = threading.Thread(target=watch)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in (watcher, *workers):
            thread.start()
        for thread in workers:
            thread.join()
    finally:
        sys.setswitchinterval(before)
        done.set()
        watcher.join()
    assert steps._total == (each * at_once, steps._last - first, 2 * each * at_once)
    assert seen == sorted(seen) and all(samples == 2 * count for count, _, samples in seen)  # never half of a step


def test_the_sum_never_falls(make, clock):
    steps = make()
    steps.mark()
    clock.passes(-1)
    steps.mark()
    assert (steps.count, steps.seconds) == (1, 0)


def test_a_mark_within_a_mark_does_not_wait_for_itself(make):
    steps = make()
    steps.mark()
    with steps._lock:  # where a signal's handler finds it
        steps.mark()
    assert steps.count == 1


@pytest.mark.parametrize(("variables", "serve", "serves"), [
    ({}, None, True), ({"RANK": "0"}, None, True), ({"RANK": "1"}, None, False), ({"RANK": "1"}, True, True), ({}, False, False)])
def test_rank_0_alone_serves_unless_told(make, monkeypatch, variables, serve, serves):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    steps = make(serve=serve)
    steps.mark()
    steps.mark()
    assert (steps.port is not None) == serves and steps.count == 1


def test_an_initialised_process_group_says_more_than_the_variable(make, monkeypatch):
    class Distributed:
        rank = None
        is_available = staticmethod(lambda: True)
        is_initialized = classmethod(lambda self: self.rank is not None)
        get_rank = classmethod(lambda self: self.rank)

    monkeypatch.setitem(sys.modules, "torch.distributed", Distributed)
    for variable, rank, serves in (("0", None, True), ("3", None, False), ("3", 0, True), ("0", 1, False)):
        monkeypatch.setenv("RANK", variable)
        monkeypatch.setattr(Distributed, "rank", rank)
        steps = make()
        steps.mark()
        assert (steps.port is not None) == serves


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # torch forks the workers of its loaders all the same
def test_a_forked_child_neither_serves_nor_keeps_the_port(make):
    steps = make()
    steps.mark()
    port, (ready, go_on) = steps.port, os.pipe()
    child = os.fork()
    if child == 0:  # a worker of a data loader that outlives its parent
        steps.mark()
        os.read(ready, 1)
        os._exit(steps.port is not None or steps.count != 1)
    try:
        steps.close()
        again = make(port=port)
        again.mark()
        assert again.port == port
    finally:
        os.write(go_on, b"1")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_registry_of_the_job_serves_in_place_of_a_port(make, clock, caplog):
    client = pytest.importorskip("prometheus_client", reason="prometheus-client is not installed: its registry is not tried")
    registry = client.CollectorRegistry()
    steps = make(registry=registry, samples=3)
    for _ in range(3):
        steps.mark()
        clock.passes(0.5)
    assert steps.port is None
    found, ours = (values(text) for text in (client.generate_latest(registry).decode(), steps.text()))
    assert found.pop("horus_job_start_time_seconds") == pytest.approx(ours.pop("horus_job_start_time_seconds"), abs=0.001)
    assert found == ours and found["horus_job_step_seconds_sum"] == 1
    assert client.generate_latest(registry).decode().count("# TYPE") == steps.text().count("# TYPE")
    make(registry=registry).mark()
    assert "registry: expected to serve step times there" in caplog.text and "Duplicated timeseries" in caplog.text
    steps.close()
    assert client.generate_latest(registry) == b""


def test_copies_keep_settings_and_count_from_0(make):
    steps = make(samples=2, warmup=1, serve=False)
    for _ in range(4):
        steps.mark()
    for other in (copy.copy(steps), pickle.loads(pickle.dumps(steps)), copy.deepcopy(steps)):
        assert other._settings == steps._settings and "port" in steps._settings and other.count == 0


def test_its_file_alone_is_enough_for_an_image_without_packages(tmp_path):
    shutil.copy(SOURCE, tmp_path / "steps.py")
    done = run(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import steps; s = steps.Steps(0, warmup=0); s.mark(); s.mark(); "
               "import urllib.request; print(urllib.request.urlopen(f'http://127.0.0.1:{s.port}').read().decode())", "-I", "-S")
    assert done.returncode == 0, done.stderr
    assert "horus_job_step_seconds_count 1\n" in done.stdout and done.stderr == ""


def test_importing_it_loads_neither_numpy_nor_the_compiled_module(steps_module):
    done = run("import sys, horus.steps; print([m for m in sys.modules if m in ('horus._core', 'numpy', 'torch', 'prometheus_client')])")
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_a_callback_without_its_framework_names_it(steps_module):
    hidden = "import sys; sys.modules.update(dict.fromkeys(('lightning', 'pytorch_lightning', 'transformers'))); import horus.steps; "
    for call, name in (("lightning_callback", "pytorch_lightning"), ("transformers_callback", "transformers")):
        done = run(f"{hidden}horus.steps.{call}()")
        assert f"ModuleNotFoundError: import of {name} halted" in done.stderr
