# SPDX-License-Identifier: Apache-2.0
"""What a step of training pays for telling its time (horus.steps). Run by `scripts/python --bench`."""

import pytest

from horus.steps import Steps


@pytest.fixture
def steps():
    steps = Steps(0)
    for _ in range(10):  # past the warm-up, serving
        steps.mark()
    assert steps.port is not None
    yield steps
    steps.close()


def test_mark(benchmark, steps):
    benchmark(steps.mark)


def test_step(benchmark, steps):
    def step():
        with steps.step():
            pass

    benchmark(step)
