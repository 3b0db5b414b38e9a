# SPDX-License-Identifier: Apache-2.0
"""A machine with one make-believe GPU for the tests beside this file: a packed profiler, a fake NVML, nets that sleep.

Each test is called as: <part>_test.py NVML_FOLDER REPOSITORY_ROOT [unittest arguments]
"""
import csv
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

NVML, ROOT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
STUB = pathlib.Path(__file__).resolve().parent / "stub"
SKIPPED = 77
# The least of everything: what is measured is not looked at closely.
SHORT = ("--window", "0.1", "--steps", "3", "--warm", "0.05", "--window-max", "5", "--minutes", "60")
NETS = """
import os, signal, time

def quick(batch):
    return 0.002 * batch, 500 * batch

def slow(batch):
    return 0.004 * batch, 700

def full(batch):
    if batch > 2:
        raise MemoryError("CUDA out of memory")
    return 0.002, 100

def raises(batch):
    raise KeyError("no such layer")

def dies(batch):
    def step():
        os.kill(os.getpid(), signal.SIGKILL)
    return step, 100

def loses(batch):
    def step():
        open(os.path.join(os.environ["FAKE_NVML"], "lost"), "w").close()
        return 0.01
    return step, 100

def endless(batch):
    return 0.01, 100

def visited(batch):
    def step():
        open(os.path.join(os.environ["FAKE_NVML"], "procs", os.environ["VISITOR"]), "w").write("512")
        return 0.002
    return step, 100
"""


class FreshMachine(unittest.TestCase):
    """A fresh machine for each test."""

    in_use_ok = ("--in-use-ok",)
    stand_ins = ("torch.py", "training.py", "graphs.py")

    def setUp(self):
        held = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)
        self.tool, self.fake, self.out = self.folder / "tool", self.folder / "fake", self.folder / "out"
        (self.fake / "procs").mkdir(parents=True)
        (self.fake / "util").write_text("60")
        subprocess.run([sys.executable, ROOT / "bench/profile/horus-profile", "pack", self.tool], check=True,
                       stdout=subprocess.DEVNULL)
        for name in self.stand_ins + (() if importlib.util.find_spec("pynvml") else ("pynvml.py",)):
            shutil.copy(STUB / name, self.tool / name)
        self.nets = self.folder / "nets.py"
        self.nets.write_text(NETS)
        self.environment = {**os.environ, "LD_LIBRARY_PATH": str(NVML), "FAKE_NVML": str(self.fake)}

    def idle(self):
        """The GPU is free, and the command has to see to it that it is."""
        (self.fake / "util").write_text("0")
        self.in_use_ok = ()

    def command(self, *nets, more=()):
        named = [part for net in nets for part in ("--net", f"{self.nets}:{net}")]
        return [sys.executable, str(self.tool / "horus-profile"), "run", "--device", "cpu", *self.in_use_ok, "--out",
                str(self.out), *SHORT, *named, *map(str, more)]

    def run_tool(self, *nets, more=(), **options):
        done = subprocess.run(self.command(*nets, more=more), capture_output=True, text=True, env=self.environment,
                              cwd=self.folder, check=False, **options)
        return done.returncode, done.stderr

    def journal(self):
        path = self.out / "runs.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def outcomes(self):
        return [(run["kind"], run.get("net_name"), run.get("batch"), run["outcome"]) for run in self.journal()]

    def rows(self, name):
        with open(self.out / name, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def manifest(self):
        return json.loads((self.out / "manifest.json").read_text())

    def left_behind(self):
        """Process ids that still run something of this test's folder."""
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    line = file.read()
                with open(f"/proc/{entry}/stat") as file:
                    dead = file.read().rsplit(")", 1)[1].split()[0] == "Z"
            except OSError:
                continue
            if str(self.folder).encode() in line and not dead and int(entry) != os.getpid():
                found.append(int(entry))
        return found

    def assert_nobody_left(self):
        """The kernel may need a moment to end a process."""
        for _ in range(1200):
            if not self.left_behind():
                return
            time.sleep(0.05)
        self.fail(f"processes left behind: {self.left_behind()}")

    def start(self, *nets, more=()):
        return subprocess.Popen(self.command(*nets, more=more), stderr=subprocess.PIPE, text=True, env=self.environment,
                                cwd=self.folder)

    def until(self, true, process):
        """Waits for something while the process lives."""
        while not true():
            if process.poll() is not None:
                self.fail(f"ended with {process.returncode}: {process.stderr.read()}")
            time.sleep(0.02)


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])


__all__ = ["NVML", "ROOT", "SKIPPED", "STUB", "FreshMachine", "main", "signal", "subprocess", "sys", "time"]
