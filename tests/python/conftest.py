# SPDX-License-Identifier: Apache-2.0
"""What the tests share: the zoo, small clusters, jobs."""

import os
import pathlib
import random
import signal

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRAPHS = ROOT / "examples/models/graphs"

# A shell that runs the tests in the background has them ignore Ctrl-C, and so would all that they start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def built(variable, name):
    """What the environment names, else a file of a build without sanitisers; none where there is none."""
    named = os.environ.get(variable)
    files = [pathlib.Path(named)] if named else [ROOT / "build" / preset / name for preset in ("dev", "release", "default")]
    return next((file for file in files if file.exists()), None)


@pytest.fixture(scope="session")
def horus():
    return pytest.importorskip("horus")


@pytest.fixture(scope="session")
def resnet(horus):
    return horus.Graph.from_onnx(GRAPHS / "resnet50.onnx")


@pytest.fixture(scope="session")
def predictor(horus):
    return horus.Predictor()


@pytest.fixture
def make(horus):
    """Makes clusters and jobs from a seed."""
    return Maker(horus)


class Maker:
    def __init__(self, horus):
        self.horus = horus

    def demand(self, util=40.0, mem=4_000, **fields):
        return self.horus.Demand(gpu_util_pct=util, mem_mib=mem, mem_bw_util_pct=util / 2, step_time_us=100_000, **fields)

    def job(self, number=1, util=40.0, mem=4_000, **fields):
        fields.setdefault("demands", {"any": self.demand(util, mem)})
        fields.setdefault("cpu_milli", 1_000)
        fields.setdefault("mem_mib", 1_024)
        return self.horus.Job(id=number, **fields)

    def cluster(self, nodes=2, devices=2, gpu="v100-pcie-16gb", **fields):
        device = self.horus.Device(gpu)
        return self.horus.Cluster([
            self.horus.Node(id=i + 1, name=f"n{i + 1}", cpu_milli=64_000, mem_mib=262_144, devices=[device] * devices, **fields)
            for i in range(nodes)])

    def jobs(self, count, seed=0):
        draw = random.Random(seed)
        return [self.job(i + 1, draw.uniform(5, 95), draw.randrange(500, 12_000), submit_us=i) for i in range(count)]
