# SPDX-License-Identifier: Apache-2.0
"""From rows to bundles with the built command. Usage: train_test.py HORUS_BINARY REPOSITORY_ROOT."""
import contextlib
import csv
import io
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

HORUS, ROOT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
sys.path.insert(0, str(ROOT / "bench" / "profile"))

import design
import measure
import store
import train
import zoo
from made_up import alone, together

NETS = ("dcgan_generator", "pointnet", "gcn_cora", "bert_tiny")


class Train(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.rows, self.out = pathlib.Path(held.name, "rows"), pathlib.Path(held.name, "out")

    def campaign(self, nets, pairs):
        kept, runs = store.Store(self.rows, "made-up"), []
        (self.rows / "graphs").mkdir(exist_ok=True)
        for place, job in enumerate(design.isolated_jobs({net: zoo.ZOO[net] for net in nets})[:3 * len(nets)]):
            shutil.copy(ROOT / f"examples/models/graphs/{job.net}.onnx", self.rows / "graphs")
            runs.append(alone(job.name, net=job.net, net_name=job.net, family=job.family, batch=job.batch,
                              dims=job.dims_text, precision=job.precision, optimizer=job.optimizer, mode=job.mode,
                              step_mean_us=1000.0 + 500 * place, gpu_util_pct=30.0 + 5 * place))
            kept.add(runs[-1])
        alone_us = kept.alone_us()
        for place, jobs in enumerate(design.groups(runs, 2, 140000, [], pairs)):
            kept.add(together(jobs, [alone_us[job] * (1.2 + place % 5 / 10) for job in jobs]))

    def train(self, *more):
        said, wrong = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(wrong):
            code = measure.main(["train", "--rows", str(self.rows), "--horus", str(HORUS), "--out", str(self.out),
                                 "--rounds", "1", *more])
        return code, said.getvalue(), wrong.getvalue()

    def test_both_bundles_and_the_accuracy_before_and_after(self):
        self.campaign(NETS, train.PAIRS_AT_LEAST)
        code, said, wrong = self.train()
        self.assertEqual((code, wrong), (0, ""))
        for name in ("demand.hbundle", "pairs.hbundle"):
            self.assertGreater((self.out / name).stat().st_size, 0)
        found = json.loads((self.out / "accuracy.json").read_text())
        self.assertEqual(set(found["demand"]["after"]), {"model", "family"})
        for after in found["demand"]["after"].values():
            self.assertEqual(set(found["demand"]["before"]["step_time_us"]), set(after["step_time_us"]))
        self.assertEqual(found["left_out"], [])
        slowdowns = found["interference"]
        self.assertEqual(set(slowdowns["before"]), {"pair", "net", "family"})
        for left, before in slowdowns["before"].items():
            after = slowdowns["after"][left]
            for way in (before, after):
                self.assertEqual({one["model"] for one in way}, set(train.MODELS))
            self.assertEqual(*([(one["model"], one["rows_measured"]) for one in way] for way in (before, after)))
            self.assertNotEqual(before[0]["mape_pct"], after[0]["mape_pct"])
        self.assertRegex(said, "before +net left out +family left out")
        self.assertRegex(said, r"time-slice, net left out +\d+ +[\d.]+%")

    def test_a_quantity_of_few_rows_is_left_out_and_said_and_the_rest_is_trained(self):
        self.campaign(NETS, 0)
        path = self.rows / "dataset.csv"
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for place, row in enumerate(rows):
            row["mem_mib"] = row["mem_mib"] if place < 9 else ""  # enough to learn from, too few when a net is gone
            row["gpu_util_pct"] = row["gpu_util_pct"] if place < 4 else ""  # too few
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
        code, said, wrong = self.train()
        self.assertEqual((code, wrong), (0, ""))
        found = json.loads((self.out / "accuracy.json").read_text())
        why = {one["what"]: one["why"] for one in found["left_out"] if one["why"].startswith(("mem_mib", "memory"))}
        self.assertEqual({one["what"] for one in found["left_out"]},
                         {"demands", "demands, each net left out", "demands, each family left out"}, why)
        self.assertIn("left out: demands, each net left out: ", said)
        self.assertIn("expected at least 8 rows", said)
        self.assertIn("step_time_us", found["demand"]["after"]["model"])
        self.assertNotIn("gpu_util_pct", found["demand"]["after"]["model"])
        self.assertGreater((self.out / "demand.hbundle").stat().st_size, 0)

    def test_rows_too_few_for_any_quantity_leave_the_slowdowns(self):
        self.campaign(NETS[:3], train.PAIRS_AT_LEAST)
        path = self.rows / "dataset.csv"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[i] for i in (0, 1, 4, 7)))
        code, said, wrong = self.train()
        self.assertEqual((code, wrong), (0, ""))
        self.assertFalse((self.out / "demand.hbundle").exists())
        self.assertGreater((self.out / "pairs.hbundle").stat().st_size, 0)
        self.assertRegex(said, "left out: demands: training: expected a quantity that at least 8 rows measure")
        (self.rows / "pairs.csv").write_text((self.rows / "pairs.csv").read_text().splitlines()[0] + "\n")
        code, said, wrong = self.train()
        self.assertEqual(code, 1)
        self.assertIn("nothing could be trained", wrong)

    def test_few_pairs_give_no_interference_model(self):
        self.campaign(NETS, 2)
        code, said, _ = self.train()
        self.assertEqual(code, 0)
        self.assertIn("2 pairs; no interference model", said)
        self.assertFalse((self.out / "pairs.hbundle").exists())

    def test_refusals_say_what_was_expected(self):
        code, _, wrong = self.train()
        self.assertEqual(code, 1)
        self.assertIn("expected a table that `horus-profile run` wrote", wrong)
        self.campaign(NETS[:2], 0)
        self.assertIn("2 nets; expected 3 at least", self.train()[2])
        self.campaign(NETS, 0)
        self.assertIn("No such file", self.train("--horus", "/nowhere/horus")[2])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
