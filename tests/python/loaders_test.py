# SPDX-License-Identifier: Apache-2.0
"""Pipelines of PyTorch, WebDataset, Hugging Face datasets and TensorFlow under the profiler, where they are installed.

All but WebDataset are far larger than what else is tested here, so scripts/python does not install them; then these tests are skipped
and say so. By hand: pip install torch webdataset datasets tensorflow-cpu. No speed is asserted.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import time
import uuid

import pytest

from conftest import ROOT

profile = pytest.importorskip("horus.profile")
EXAMPLE = ROOT / "examples/python/loaders.py"
TORCH = '''
import os, pathlib, time
from torch.utils.data import DataLoader

HERE = pathlib.Path(__file__).parent

class Items:
    def __init__(self, wrong):
        self.wrong = wrong
    def __len__(self):
        return 64
    def __getitem__(self, index):
        if index == 40:
            self.wrong()
        return index

def note(worker):
    with open(HERE / "workers", "a") as file:
        print(os.getpid(), file=file)

def loader(workers, wrong=int, **options):
    return DataLoader(Items(wrong), batch_size=4, num_workers=workers, worker_init_fn=note, **options)

def fails():
    raise OSError("picture 7 is broken")  # the worker's place

def persistent(workers): return loader(workers, persistent_workers=True)
def unpicklable(workers): return loader(workers, lambda: None)
def failing(workers): return loader(workers, fails)
def dying(workers): return loader(workers, lambda: os.kill(os.getpid(), 9))
def hanging(workers): return loader(workers, lambda: time.sleep(600))
'''


def needed(names):
    for name in names:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed: its pipelines are not profiled")


def example():
    spec = importlib.util.spec_from_file_location("loaders", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {loader.__name__: ("PIL", *needs) for loader, needs in module.NEEDS.items()}


@pytest.fixture
def profiled():
    """Runs the command; afterwards none of its processes may be left."""
    mark = f"HORUS_TEST_MARK={uuid.uuid4()}"

    def run(pipeline, *options):
        line = [sys.executable, "-m", "horus.profile", "--sensitivity", pipeline, "--cores", "1", "--budget", "1", "--timeout", "500"]
        return subprocess.run([*line, *options], env={**os.environ, **dict([mark.split("=")])}, capture_output=True, text=True,
                              check=False, timeout=600)  # importing torch takes minutes where others take the processor

    yield run
    end = time.monotonic() + 60
    while left := having(mark):
        assert time.monotonic() < end, left
        time.sleep(0.1)


def having(mark):
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text(encoding="utf-8"))
        except OSError:
            pass
    return found


@pytest.fixture
def torch_pipelines(tmp_path):
    needed(["torch"])
    (tmp_path / "mine.py").write_text(TORCH, encoding="utf-8")
    return tmp_path / "mine.py"


@pytest.mark.parametrize("name", example())
def test_pipelines_are_profiled_and_end(profiled, name):
    needed(example()[name])
    done = profiled(f"{EXAMPLE}:{name}")
    assert done.returncode == 0 and f"loaders.py:{name}: input pipeline, 1 of 1 core counts measured" in done.stdout, done.stderr


def test_workers_that_persist_are_started_once(profiled, torch_pipelines):
    done = profiled(f"{torch_pipelines}:persistent", "--json")
    assert done.returncode == 0 and '"restarts": 0' not in done.stdout, done.stderr
    assert len((torch_pipelines.parent / "workers").read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="workers are not forked by default since Python 3.14")
def test_workers_need_no_more_than_in_a_program_of_the_users(profiled, torch_pipelines):
    done = profiled(f"{torch_pipelines}:unpicklable")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("name", "words"), [
    ("failing", "found OSError at mine.py:LINE: picture 7 is broken\n"), ("dying", "expected batches, found RuntimeError at "),
    ("hanging", "expected a batch, found none within 10 s\n"),
])
def test_what_a_worker_does_wrong_is_the_last_line(profiled, torch_pipelines, name, words):
    if sys.version_info >= (3, 14) and name != "failing":
        pytest.skip("workers are not forked by default since Python 3.14")
    line = next(i for i, text in enumerate(TORCH.splitlines(), 1) if "the worker's place" in text)
    done = profiled(f"{torch_pipelines}:{name}", *(["--timeout", "10"] if name == "hanging" else []))
    last = done.stderr.splitlines(keepends=True)[-1]
    assert done.returncode == 1 and last.startswith(f"horus: profile: mine.py:{name}: at 1 core, 1 worker: "), done.stderr
    assert words.replace("LINE", str(line)) in last


def test_more_workers_than_shards_are_named(profiled):
    needed(["PIL", "torch", "webdataset"])
    done = profiled(f"{EXAMPLE}:webdataset_loader", "--workers-per-core", "8")
    assert done.returncode == 1 and "fewer shards than workers" in done.stderr.splitlines()[-1], done.stderr
