# SPDX-License-Identifier: Apache-2.0
"""Input pipelines: what a run does and cleans up, what its errors say, what becomes of rates; the command. No speed is asserted."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

profile = pytest.importorskip("horus.profile")
runs = pytest.importorskip("horus.profile.runs")
errors = pytest.importorskip("horus.errors")

CPUS = sorted(os.sched_getaffinity(0))
PIPELINES = '''
import concurrent.futures, multiprocessing, os, pathlib, signal, subprocess, sys, time

HERE = pathlib.Path(__file__).parent

class Epochs:
    def __iter__(self):
        return iter(range(30))

def note(workers):
    with open(HERE / "calls", "a") as file:
        print(workers, sorted(os.sched_getaffinity(0)), file=file)

def iterable(workers):
    note(workers)
    print("a word on standard output")
    return Epochs()

def generator(workers):
    note(workers)
    yield from range(10_000)

def with_workers(workers):
    # One that outlives SIGTERM and its parent, as no well-behaved worker would.
    child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"])
    (HERE / "pid").write_text(str(child.pid))
    (HERE / "own").write_text(str(os.getpid()))
    yield from iter(int, 1)

def hangs(workers):
    yield from with_workers_then(workers)

def with_workers_then(workers):
    feed = with_workers(workers)
    yield next(feed)
    time.sleep(600)

class Persisting:
    """Its iterator is one object, which begins anew: a loader whose workers persist."""
    def __iter__(self):
        self.left = 30
        self.kept = self.kept if hasattr(self, "kept") else Again(self)
        return self.kept

class Again:
    def __init__(self, owner):
        self.owner = owner
    def __next__(self):
        if not self.owner.left:
            raise StopIteration
        self.owner.left -= 1
    def __iter__(self):
        return self

def persisting(workers):
    note(workers)
    return Persisting()

class Slow:
    def __iter__(self):
        time.sleep(0.3)
        return iter(range(3))

def slow_to_start(workers): return Slow()

def method(workers):
    (HERE / "method").write_text(multiprocessing.get_start_method())
    return Epochs()

def killed_beside_a_worker(workers):
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    child.start()
    (HERE / "pid").write_text(str(child.pid))
    yield 1
    os.kill(os.getpid(), 9)

def raises_beside_a_handler(workers):
    # As PyTorch's: it raises when a worker has died, here while the first error is being told.
    def handler(*_):
        raise RuntimeError("worker 3 died")
    signal.signal(signal.SIGCHLD, handler)
    child = subprocess.Popen(["sleep", "0.05"])
    raise OSError("connection lost")

def fails():
    raise ValueError("picture 7\\nis broken")  # the worker's place

def worker_fails(workers):
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        yield pool.submit(fails).result()

def empty(workers): return []
def number(workers): return 3
def raises(workers): raise RuntimeError("no such dataset")
def does_not_parse(workers): exec(compile("1 +", __file__, "exec"))
def leaves(workers): sys.exit("left")
def dies(workers): os._exit(3)
def killed(workers): os.kill(os.getpid(), 9)
'''


@pytest.fixture
def pipelines(tmp_path):
    file = tmp_path / "pipelines.py"
    file.write_text(PIPELINES, encoding="utf-8")
    return file


def profiled(pipelines, function, **options):
    options.setdefault("budget_s", 0.1)
    return profile.profile_inputs(f"{pipelines}:{function}", **options)


def gone(pid):
    """Whether the process has ended; waits for it as long as a busy machine may need."""
    for _ in range(600):
        try:
            if pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def waited_for(file):
    for _ in range(1200):
        if file.exists() and file.read_text(encoding="utf-8"):
            return int(file.read_text(encoding="utf-8"))
        time.sleep(0.05)
    raise AssertionError(f"{file} never came")


def made(rates=((1, 100.0), (2, 180.0), (4, 200.0)), counts=(1, 2, 3, 4), **fields):
    return profile.InputProfile("made", counts, tuple(profile.InputRun(c, c, rate, 0.0, 1000, 0, 1.0) for c, rate in rates), 3.0, **fields)


def stored(**fields):
    return profile.InputStorage(**{**dict(dataset_mib=1000, epoch_batches=100, mem_mib=(500, 1000, 2000), disk_mib_s=100,
                                          memory_mib_s=10_000), **fields})


# ---- A run.

@pytest.mark.parametrize(("function", "words"), [
    ("empty", "expected batches, found none"), ("number", "expected an iterable of batches, found int"),
    ("raises", "found RuntimeError at pipelines.py:"), ("raises_beside_a_handler", "found RuntimeError at pipelines.py:"),
    ("does_not_parse", "found SyntaxError at pipelines.py:1: "), ("leaves", "found SystemExit at pipelines.py:"),
    ("dies", "ended with exit status 3"), ("killed", "ended by SIGKILL"), ("absent", "expected a function 'absent'"),
])
def test_a_pipeline_that_fails_is_named_with_its_cores(pipelines, function, words):
    with pytest.raises(profile.PipelineError) as caught:
        profiled(pipelines, function, cores=1)
    assert f"pipelines.py:{function}: at 1 core, 1 worker: " in str(caught.value) and words in str(caught.value)
    assert isinstance(caught.value, errors.Error)


def test_one_that_hangs_ends_with_everything_it_started(pipelines):
    with pytest.raises(profile.PipelineError, match="expected a batch, found none within 3 s"):
        profiled(pipelines, "hangs", cores=1, timeout_s=3)
    assert gone(waited_for(pipelines.with_name("pid"))) and gone(waited_for(pipelines.with_name("own")))


def test_workers_that_outlive_their_pipeline_are_ended(pipelines):
    profiled(pipelines, "with_workers", cores=1)
    assert gone(waited_for(pipelines.with_name("pid")))


def test_a_caller_that_is_killed_takes_the_pipeline_along(pipelines):
    caller = subprocess.Popen([sys.executable, "-m", "horus.profile", f"{pipelines}:hangs", "--cores", "1"])
    pids = [waited_for(pipelines.with_name(name)) for name in ("own", "pid")]
    caller.kill()
    caller.wait()
    assert all(map(gone, pids))


def test_it_gets_its_cores_and_a_worker_for_each(pipelines):
    for count in {1, len(CPUS)}:
        found = profiled(pipelines, "iterable", cores=[count])
        calls = pipelines.with_name("calls").read_text(encoding="utf-8").splitlines()
        assert calls == [f"{count} {CPUS[:count]}"] and found.runs[0].cores == found.runs[0].workers == count
        assert found.runs[0].restarts > 1 and found.runs[0].batches > 0
        pipelines.with_name("calls").unlink()
    profiled(pipelines, "iterable", cores=[1], workers_per_core=3, cpus=CPUS[-1:])
    assert pipelines.with_name("calls").read_text(encoding="utf-8") == f"3 {CPUS[-1:]}\n"


def test_an_iterator_that_ends_is_made_anew(pipelines):
    restarts = profiled(pipelines, "generator", cores=1).runs[0].restarts
    assert restarts > 0 and len(pipelines.with_name("calls").read_text(encoding="utf-8").splitlines()) == restarts + 1


def test_an_iterable_that_starts_its_one_iterator_again_is_kept(pipelines):
    run = profiled(pipelines, "persisting", cores=1).runs[0]
    assert run.restarts > 1 and len(pipelines.with_name("calls").read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.parametrize("chosen", [None, "fork", "spawn"])
def test_workers_start_as_in_a_program_of_the_users(pipelines, chosen):
    choose = f"import multiprocessing as m\nm.set_start_method({chosen!r}, force=True)\n"
    program = choose + f"import horus.profile as p\np.profile_inputs({f'{pipelines}:method'!r}, cores=1, budget_s=.1)\n"
    subprocess.run([sys.executable, "-c", program], check=True)
    done = subprocess.run([sys.executable, "-c", choose + "print(m.get_start_method())"], capture_output=True, text=True, check=True)
    assert pipelines.with_name("method").read_text(encoding="utf-8") == done.stdout.strip()


def test_one_that_is_killed_is_named_at_once_though_its_workers_live(pipelines):
    with pytest.raises(profile.PipelineError, match="ended by SIGKILL"):
        profiled(pipelines, "killed_beside_a_worker", cores=1, timeout_s=300)
    assert gone(waited_for(pipelines.with_name("pid")))


def test_an_error_of_a_worker_is_told_in_a_line_with_its_place(pipelines):
    line = next(i for i, text in enumerate(PIPELINES.splitlines(), 1) if "the worker's place" in text)
    with pytest.raises(profile.PipelineError) as caught:
        profiled(pipelines, "worker_fails", cores=1)
    assert str(caught.value).endswith(f": expected batches, found ValueError at pipelines.py:{line}: picture 7 is broken")


def test_time_between_epochs_is_told(pipelines):
    told = []
    found = profiled(pipelines, "slow_to_start", cores=1, progress=told.append)
    assert 0.5 < found.runs[0].restarting <= 1 and "of it between epochs" in told[-1] and "of the time went by between epochs" in found.report()
    assert profiled(pipelines, "with_workers", cores=1).runs[0].restarting == 0


def test_a_function_that_cannot_be_imported_needs_fork():
    with pytest.raises(errors.InvalidArgument, match="expected a function of a module.*start='fork'"):
        profile.profile_inputs(lambda workers: range(9), cores=1, budget_s=0.1)
    done = subprocess.run([sys.executable, "-c", "import horus.profile as p\n"
                           "print(p.profile_inputs(lambda workers: range(9), cores=1, budget_s=.1, start='fork').counts)"],
                          capture_output=True, text=True, check=True)
    assert done.stdout == "(1,)\n"


def test_usable_cores_obey_affinity_and_quota(tmp_path):
    assert 1 <= runs.usable_cores() <= len(CPUS)
    (tmp_path / "cpu.max").write_text("150000 100000\n", encoding="utf-8")
    assert runs._quota(tmp_path) == 1.5
    (tmp_path / "cpu.max").write_text("max 100000\n", encoding="utf-8")
    with pytest.raises(ValueError):
        runs._quota(tmp_path)
    (tmp_path / "cpu.max").unlink()
    (tmp_path / "cpu.cfs_quota_us").write_text("-1\n", encoding="utf-8")
    (tmp_path / "cpu.cfs_period_us").write_text("100000\n", encoding="utf-8")
    with pytest.raises(ValueError):
        runs._quota(tmp_path)


@pytest.mark.parametrize(("options", "words"), [
    (dict(cores=0), "cores: expected counts from 1"), (dict(cores=len(CPUS) + 1), f"the {len(CPUS)} CPUs of this process"),
    (dict(cores=[]), "cores: expected counts"), (dict(tolerance=0), "tolerance: expected above 0, found 0"),
    (dict(budget_s=float("nan")), "budget_s: expected above 0, found nan"), (dict(start="thread"), "start: expected spawn"),
    (dict(workers_per_core=-1), "workers_per_core"), (dict(cores=1, max_runs=0), "max_runs: expected"),
])
def test_wrong_arguments_are_named(pipelines, options, words):
    with pytest.raises(errors.InvalidArgument, match=words):
        profiled(pipelines, "iterable", **options)


@pytest.mark.parametrize("text", ["pipelines.py", "pipelines:iterable", "none.py:iterable", "none.py:not a name"])
def test_wrong_pipelines_are_named(text):
    with pytest.raises(errors.InvalidArgument, match="expected"):
        profile.profile_inputs(text)


# ---- What becomes of rates.

def test_measured_counts_are_told_from_computed_ones():
    rates = made().rates
    assert [one.measured for one in rates] == [True, True, False, True]
    assert [rates[0].rate, rates[3].rate] == [100, 200] and 190 < rates[2].rate < 200 and 0 < rates[2].error < 0.06
    assert made().rate(0.5).rate == 50


def test_more_cores_that_were_slower_are_told():
    assert "2 cores made 60 batches/s, less than fewer cores" in made(((1, 100.0), (2, 60.0)), (1, 2)).report()
    assert "less than" not in made(((1, 100.0), (2, 95.0)), (1, 2)).report() + made().report()


def test_speeds_are_relative_to_the_fair_share(horus):
    found = made().sensitivity(2, 62.5)
    assert found.cpu_milli == (1000, 2000, 3000, 4000) and found.mem_mib == (64_000,)
    assert found.host_us == pytest.approx(1e6 / 180) and made().with_gpu_step(8).sensitivity(2, 1).host_us == 0
    assert found.speeds[0] == pytest.approx(100 / 180) and found.speeds[1] == 1 and found.speeds[3] == pytest.approx(200 / 180)


def test_parts_of_a_core_are_points_too(horus):
    found = made().sensitivity(2, 1, cores=[0.5, 2])
    assert found.cpu_milli == (500, 2000) and found.speeds == pytest.approx((50 / 180, 1))
    assert made().csv("x", 2, 1, cores=[0.5]).splitlines()[1].startswith("x,0.5,1,0.277778,5555.56")
    for wrong in ([], [2, 1], [0, 1], [5]):
        with pytest.raises(errors.InvalidArgument, match="cores: expected"):
            made().sensitivity(2, 1, cores=wrong)


def test_a_gpu_step_bounds_the_whole_job(horus):
    job = made().with_gpu_step(8)  # 125 batches/s
    assert [one.rate for one in job.rates] == [100, 125, 125, 125] and job.rates[2].error == 0
    assert job.sensitivity(1, 1).speeds == pytest.approx((1, 1.25, 1.25, 1.25))


def test_the_cores_that_a_gpu_needs():
    assert made().cores_for(10) == 1 and made().cores_for(9.8) == 1 and made().cores_for(8) == 2 and made().cores_for(5) == 4
    assert made().cores_for(1) is None and made().with_gpu_step(1000).cores_for(8) == 2
    assert "2 cores keep it busy" in made().report(8) and "4 cores do not keep it busy" in made().report(1)


def test_memory_bounds_what_can_be_fetched(horus):
    found = made(storage=stored())
    # 1000 MiB at half cached: 500 / 10,000 + 500 / 100 = 5.05 s for 100 batches.
    assert found.rate(4, 500 / 1024).rate == pytest.approx(100 / 5.05) and found.rate(4, 1000 / 1024).rate == 200
    speeds = found.sensitivity(4, 1).speeds
    assert len(speeds) == 12 and speeds[-3:] == pytest.approx((100 / 5.05 / 200, 1, 1))
    assert speeds[0] == pytest.approx(100 / 5.05 / 200) and speeds[1] == pytest.approx(0.5)


def test_two_gpus_share_an_epoch_and_its_cache():
    two = stored(gpus=2, process_mib=250)
    assert two.hits(500) == 0.5 and two.limit(500) == pytest.approx(50 / 5.05)


@pytest.mark.parametrize(("cache", "hits"), [("fixed", (0.5, 1, 1)), ("lru-sequential", (0, 1, 1)),
                                             ("lru-shuffled", (0.1534, 1, 1))])
def test_hits_depend_on_who_caches(cache, hits):
    assert [stored(cache=cache).hits(mib) for mib in (500, 1000, 2000)] == pytest.approx(hits, abs=1e-4)


def test_shuffled_hits_are_those_of_a_cache_in_small():
    import random
    draw, files, room, held, hits = random.Random(3), 2000, 1000, {}, 0
    for epoch in range(6):
        for file in draw.sample(range(files), files):
            hits += epoch > 0 and file in held
            held.pop(file, None)
            held[file] = None
            if len(held) > room:
                del held[next(iter(held))]
    assert hits / 5 / files == pytest.approx(stored(cache="lru-shuffled").hits(500), abs=0.02)


@pytest.mark.parametrize("wrong", [dict(dataset_mib=0), dict(mem_mib=()), dict(mem_mib=(2, 1)), dict(mem_mib=(0, 1)),
                                   dict(process_mib=-1), dict(disk_mib_s=float("inf")), dict(cache="lucky")])
def test_wrong_storage_is_named(wrong):
    with pytest.raises(errors.InvalidArgument, match=f"storage: {next(iter(wrong))}: expected"):
        stored(**wrong)


def test_files_have_a_row_a_cell(tmp_path):
    text = made(storage=stored(mem_mib=(500, 2048))).csv("resnet, 50", 4, 2)
    assert text.splitlines()[0] == "profile,cpu_cores,memory_gib,speed,host_us"
    assert text.splitlines()[1:3] == ['"resnet, 50",1,0.488281,0.0990099,5000', '"resnet, 50",1,2,0.5,5000'] and len(text.splitlines()) == 9
    made().with_gpu_step(8).write(tmp_path / "a.csv", "job", 2, 62.5)
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()[:2] == ["profile,cpu_cores,memory_gib,speed", "job,1,62.5,0.8"]
    with pytest.raises(errors.FileError, match="no/a.csv"):
        made().write(tmp_path / "no/a.csv", "job", 1, 1)


@pytest.mark.parametrize("fair", [(5, 1), (0, 1), (1, 0), (float("nan"), 1)])
def test_a_fair_share_outside_is_named(fair):
    with pytest.raises(errors.InvalidArgument, match="fair_"):
        made().csv("x", *fair)


# ---- Disks.

def test_a_disk_is_measured_once_and_remembered(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    try:
        found = profile.measure_disk(tmp_path, size_mib=4, cache=True)
    except errors.Unsupported as why:
        pytest.skip(str(why))
    assert found.disk_mib_s > 0 and found.memory_mib_s > 0 and [*tmp_path.iterdir()] == [tmp_path / "cache"]
    assert profile.measure_disk(tmp_path, size_mib=4, cache=True) == found
    file = tmp_path / "cache/horus/disk.json"
    known = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({key: {"disk_mib_s": 7, "memory_mib_s": 8} for key in known}), encoding="utf-8")
    assert profile.measure_disk(tmp_path, cache=True) == profile.DiskSpeed(7, 8)
    file.write_text("damaged", encoding="utf-8")
    assert profile.measure_disk(tmp_path, size_mib=1, cache=True).disk_mib_s != 7


def test_disks_that_cannot_be_measured_are_named(tmp_path):
    (tmp_path / "small").write_bytes(b"x")
    with pytest.raises(errors.InvalidArgument, match="small: expected a file of 1 MiB or more, found 1 bytes"):
        profile.measure_disk(tmp_path / "small")
    with pytest.raises(errors.FileError, match="absent: No such file"):
        profile.measure_disk(tmp_path / "absent")


# ---- The command.

def command(*arguments):
    return subprocess.run([sys.executable, "-m", "horus.profile", *map(str, arguments)], capture_output=True, text=True, check=False)


def test_the_command_prints_a_table_or_json_and_writes_sensitivities(pipelines, tmp_path):
    done = command("--sensitivity", f"{pipelines}:iterable", "--cores", 1, "--budget", 0.1, "--json", "--step-ms", 1000, "--name", "mine",
                   "--fair-cores", 1, "--fair-memory-gib", 2, "--out", tmp_path / "out.csv")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["rates"][0]["measured"] is True and found["step_ms"] == 1000 and found["runs"][0]["cores"] == 1
    assert "1 of at most 1: 1 core: " in done.stderr and "a word on standard output" in done.stderr
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == "profile,cpu_cores,memory_gib,speed\nmine,1,2,1\n"
    table = command(f"{pipelines}:iterable", "--cores", 1, "--budget", 0.1, "--memory-gib", "0.5,1", "--dataset-gib", 1,
                    "--epoch-batches", 100, "--disk-mib-s", 100, "--memory-mib-s", 1000)
    assert table.returncode == 0 and "measured" in table.stdout and "memory GiB" in table.stdout, table.stderr


@pytest.mark.parametrize(("arguments", "code", "words"), [
    ([], 2, "usage: horus profile --sensitivity FILE.py:FUNCTION"), (["none.py:f"], 2, "horus: profile: none.py:f: expected a Python file"),
    (["FILE:raises", "--cores", "1"], 1, "horus: profile: pipelines.py:raises: at 1 core"), (["FILE:iterable", "--cores", "x"], 2, "--cores"),
    (["FILE:iterable", "--out", "x.csv"], 2, "--out: expected --fair-cores"), (["FILE:iterable", "--gpu", "t4"], 2, "expected all three or none"),
    (["FILE:iterable", "--memory-gib", "1"], 2, "expected all three or none"),
    (["FILE:iterable", "--step-ms", "1", "--gpu", "t4"], 2, "--step-ms: expected alone"),
])
def test_the_command_tells_what_is_wrong(pipelines, arguments, code, words):
    done = command(*[word.replace("FILE", str(pipelines)) for word in arguments])
    assert done.returncode == code and words in done.stderr and done.stdout == "", done.stderr


def test_an_interrupt_ends_it_cleanly(pipelines):
    running = subprocess.Popen([sys.executable, "-m", "horus.profile", f"{pipelines}:hangs", "--cores", "1"], stderr=subprocess.PIPE, text=True)
    pids = [waited_for(pipelines.with_name(name)) for name in ("own", "pid")]
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=600)
    assert running.returncode == 130 and told.endswith("horus: profile: interrupted\n") and "Traceback" not in told, told
    assert all(map(gone, pids))
