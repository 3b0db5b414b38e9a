# SPDX-License-Identifier: Apache-2.0
"""The thread that samples a GPU: whose samples are whose, and a GPU that falls silent. Usage: as parts_test.py."""
import pathlib
import sys
import threading
import unittest

ROOT = pathlib.Path(sys.argv[2])
sys.path.insert(0, str(ROOT / "bench" / "profile"))

import gpu


class Silence(unittest.TestCase):
    class Mute:
        index = 0

        def sample(self, *_):
            return gpu.Sample(0, *[None] * (len(gpu.SAMPLE_FIELDS) - 1))

    def test_a_gpu_that_tells_nothing_any_more_is_lost(self):
        sampler = gpu.Sampler(self.Mute(), silent_s=0.1)
        self.addCleanup(sampler.stop)
        with self.assertRaisesRegex(gpu.GpuLost, "has told nothing for"):
            while True:
                sampler.check()


class Metrics(unittest.TestCase):
    class Slow:
        index = 0

        def __init__(self):
            self.asked, self.told = threading.Event(), threading.Event()

        def sample(self, pids, whole=True):
            self.asked.set()
            self.told.wait()
            return gpu.Sample(**{**dict.fromkeys(gpu.SAMPLE_FIELDS, 0), "process_mib": sum(pids) if whole else None})

    def test_what_was_asked_for_the_last_job_is_not_of_the_next_one(self):
        card = self.Slow()
        sampler = gpu.Sampler(card, period_s=0.001)
        self.addCleanup(sampler.stop)
        sampler.watch([7])
        card.told.set()
        while not sampler.samples:
            pass
        card.told.clear()
        card.asked.clear()
        card.asked.wait()  # a sample of job 7 is under way
        sampler.watch([5])
        card.told.set()
        sampler.look()
        while len(sampler.samples) < 3:
            pass
        self.assertEqual({one.process_mib for one in sampler.samples} - {None}, {5})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
