# SPDX-License-Identifier: Apache-2.0
"""What bench/quality/graphs/measured.py chooses, how it and measured_others.py judge graphs and go on after failures.

Usage: graphs_test.py REPOSITORY_ROOT
"""
import argparse
import contextlib
import csv
import fcntl
import io
import os
import pathlib
import stat
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "bench" / "quality" / "graphs"))

import measured
import measured_nets
import measured_operators
import measured_others
import measured_survey

ROW = dict(net="resnet_a", family="resnet", mode="train", image_size="224", params_m="25.56", gmacs="4.1", reparam="0",
           batch="64")
# Stands for the interpreter with torch: writes the file that it is told to, or fails as its net's name says.
EXPORTER = """#!/bin/sh
case $2 in
  *_broken) echo 'RuntimeError: no such operator'; exit 1 ;;
  *_silent) exit 0 ;;
  *_killed) kill -9 $$ ;;
  *_slow) kill -XCPU $$ ;;
esac
echo graph > "$5"
echo 'a warning'
echo '{"parameters": 25557032, "nodes": 175}'
"""

# The same for measured_others.py: every net is VGG16.
OTHERS = """#!/bin/sh
echo graph > "$5"
echo '{"parameters": 138357544, "nodes": 45}'
"""


def table(*changes):
    """Nets of rows that are ROW but for what is given."""
    nets = {}
    for number, change in enumerate(changes, 1):
        measured.add_row(nets, f"t.csv: row {number}", {**ROW, **change})
    return nets


def family(name, count, **changes):
    """Rows of a family's nets, the larger the later."""
    return [dict(net=f"{name}_{i:02}", family=name, gmacs=str(i + 1), **changes) for i in range(count)]


class Rows(unittest.TestCase):
    def test_rows_of_a_net_and_image_size_are_one(self):
        nets = table({}, dict(mode="infer"), dict(image_size="288"))
        self.assertEqual(list(nets), [("resnet_a", "224"), ("resnet_a", "288")])
        self.assertEqual({mode: len(rows) for mode, rows in nets["resnet_a", "224"].rows.items()},
                         {"train": 1, "eval": 1})

    def test_an_error_says_where_expected_and_found(self):
        for change, said in ((dict(image_size="big"), "image_size: expected pixels above 0, found 'big'"),
                             (dict(params_m="0"), "params_m: expected millions of parameters above 0, found '0'"),
                             (dict(gmacs="nan"), "gmacs: expected multiply-adds, or blank, found 'nan'"),
                             (dict(mode="test"), "mode: expected train or infer, found 'test'"),
                             (dict(reparam=None), "reparam: expected 0 or 1, found 'None'"),
                             (dict(net="../a"), "net: expected a name without / and spaces, found '../a'")):
            with self.assertRaisesRegex(measured.Error, "^t.csv: row 1: " + said):
                table(change)
        with self.assertRaisesRegex(measured.Error, "row 2: family: expected resnet, .* found 'vgg'"):
            table({}, dict(family="vgg"))

    def test_a_folder_without_such_a_table_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "other.csv").write_text("net,gpu\n")
            with self.assertRaisesRegex(measured.Error, "expected a table whose header names net, .* found none"):
                measured.read_tables(pathlib.Path(folder))


class Acceptance(unittest.TestCase):
    def test_parameters_agree_within_half_a_per_cent(self):
        self.assertTrue(measured.stands_for(100_499_000, 100))
        self.assertTrue(measured.stands_for(99_501_000, 100))
        self.assertFalse(measured.stands_for(100_501_000, 100))
        self.assertFalse(measured.stands_for(99_499_000, 100))

    def test_rows_with_folded_branches_have_no_graph(self):
        self.assertFalse(measured.stands_for(100_000_000, 100, reparam=True))
        net = table(dict(mode="infer", reparam="1"))["resnet_a", "224"]
        self.assertEqual(measured.judge(net, "eval", 25_557_032), (0, "rows with folded branches are left out"))

    def test_a_graph_may_stand_for_some_rows_and_says_which_not(self):
        net = table({}, dict(params_m="28.1"))["resnet_a", "224"]
        self.assertEqual(measured.judge(net, "train", 25_557_032), (1, "expected 28.1 million parameters, found 25.56"))
        self.assertEqual(measured.judge(net, "train", 20_000_000),
                         (0, "expected 25.56 or 28.1 million parameters, found 20.00"))

    def test_a_net_that_trains_otherwise_is_accepted_for_inference_alone(self):
        net = table(dict(family="volo"), dict(family="volo", mode="infer"))["resnet_a", "224"]
        self.assertEqual([measured.judge(net, mode, 25_557_032)[0] for mode in ("train", "eval")], [0, 1])


class Subset(unittest.TestCase):
    def test_families_get_equally_many_as_far_as_they_have_them(self):
        given = measured.shares({"a": 1, "b": 50, "c": 3, "d": 50}, 20)
        self.assertEqual(given, {"a": 1, "b": 8, "c": 3, "d": 8})
        given = measured.shares({"a": 9, "b": 9, "c": 9}, 20)
        self.assertEqual(sorted(given.values()), [6, 7, 7])
        self.assertEqual(measured.shares({"a": 2}, 20), {"a": 2})

    def test_each_part_of_a_familys_sizes_gives_one(self):
        chosen = measured.choose(table(*family("vgg", 20)), 4)
        self.assertEqual(sorted(int(net.gmacs - 1) // 5 for net in chosen.values()), [0, 1, 2, 3])

    def test_nets_with_inference_rows_come_first_and_those_without_training_rows_never(self):
        rows = family("vgg", 10) + family("vgg", 10, mode="infer")[3:4] + family("new", 10, mode="infer")
        self.assertEqual(list(measured.choose(table(*rows), 1)), [("vgg_03", "224")])

    def test_the_order_of_rows_does_not_matter(self):
        rows = [row for name in ("vgg", "pit", "dpn") for row in family(name, 15)]
        self.assertEqual(list(measured.choose(table(*rows), 7)), list(measured.choose(table(*rows[::-1]), 7)))

    def test_a_net_is_chosen_at_one_image_size(self):
        chosen = measured.choose(table({}, dict(image_size="288"), dict(image_size="288", mode="infer")))
        self.assertEqual(list(chosen), [("resnet_a", "288")])


class Survey(unittest.TestCase):
    SEEN = dict(error="", ops=9, ops_known=9, unknown="", params_m=25.557, gmacs=4.11)

    def faults(self, **changes):
        net = table(dict(gmacs="4.1"))["resnet_a", "224"]
        seen = {**self.SEEN, **changes}
        return measured_survey.faults({**seen, **measured_survey.beside(net, seen)})

    def test_counts_agree_within_two_per_cent_and_the_rounding(self):
        self.assertEqual(self.faults(), [])
        self.assertEqual(self.faults(gmacs=4.186), [])
        self.assertEqual(self.faults(gmacs=4.188), [("multiply-adds off", "expected 4.1 (gmacs), found 4.19")])
        self.assertEqual(self.faults(params_m=25.04), [("parameters off", "expected 25.56 (params_m), found 25.04")])

    def test_operators_without_a_rule_are_named(self):
        self.assertEqual(self.faults(ops_known=8, unknown="Col2Im:1"), [("operators without a rule", "Col2Im:1")])
        self.assertEqual(self.faults(error="no such file"), [("refused", "no such file")])

    def test_normalisations_are_counted_for_one_image_and_those_of_weights_once(self):
        count = lambda kind, shape: measured_survey.normalised(dict(op_type=kind, output_shape=shape))
        self.assertEqual(count("BatchNormalization", "64x8x2x2"), 2 * 8 * 4)
        self.assertEqual(count("LayerNormalization", "64x4x8"), 5 * 4 * 8)
        self.assertEqual(count("BatchNormalization", "1x8x27"), 5 * 8 * 27)
        self.assertEqual(count("Conv", "64x8x2x2"), 0)


class Runs(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)
        self.python = self.folder / "python"
        self.python.write_text(EXPORTER)
        self.python.chmod(self.python.stat().st_mode | stat.S_IXUSR)
        self.tell({})

    def tell(self, *changes):
        (self.folder / "data").mkdir(exist_ok=True)
        with (self.folder / "data" / "times.csv").open("w", newline="") as out:
            writer = csv.DictWriter(out, ROW)
            writer.writeheader()
            writer.writerows({**ROW, **change} for change in changes)

    def run_tool(self, **changes):
        """What it prints; graphs and tables lie in `cache`."""
        settings = dict(data=self.folder / "data", cache=self.folder / "cache", subset=False, list=False, jobs=2,
                        seconds=60, memory_gib=1, retry=False, python=str(self.python))
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(measured.work(argparse.Namespace(**{**settings, **changes})), 0)
        return said.getvalue()

    def rows(self, name):
        with (self.folder / "cache" / name).open(newline="") as source:
            return list(csv.DictReader(source))

    def test_a_graph_is_made_once_and_stands_in_the_index_for_both_modes(self):
        self.tell({}, dict(mode="infer"))
        self.assertIn("1/1 resnet_a 224: 25557032 parameters, 175 nodes", self.run_tool())
        self.assertTrue((self.folder / "cache" / "resnet_a-224-both.onnx").exists())
        self.assertEqual([(row["mode"], row["file"], row["accepted"]) for row in self.rows("index.csv")],
                         [("train", "resnet_a-224-both.onnx", "1"), ("eval", "resnet_a-224-both.onnx", "1")])
        self.assertEqual(self.run_tool(), "1 nets and sizes: 1 graphs, 0 failed\n")
        os.remove(self.folder / "cache" / "resnet_a-224-both.onnx")
        self.assertIn("1/1 resnet_a", self.run_tool())

    def test_what_fails_is_told_and_not_tried_again_unless_asked_for(self):
        self.tell(*(dict(net=f"net_{kind}") for kind in ("broken", "silent", "killed", "slow", "good")))
        self.assertIn("5 nets and sizes: 1 graphs, 4 failed", self.run_tool())
        self.assertEqual({row["net"]: row["error"] for row in self.rows("failed.csv")}, {
            "net_broken": "RuntimeError: no such operator", "net_silent": "exit status 0",
            "net_killed": "its process ended by SIGKILL, for want of memory perhaps",
            "net_slow": "took longer than 60 s of processor time"})
        self.assertNotIn("net_broken", self.run_tool())
        self.python.write_text(EXPORTER.replace("*_broken", "never"))
        self.assertIn("net_broken 224: 25557032 parameters", self.run_tool(retry=True))
        self.assertNotIn("net_broken", {row["net"] for row in self.rows("failed.csv")})

    def test_the_cheapest_come_first(self):
        self.tell(*(dict(net=f"net_{i}", gmacs=str(9 - i)) for i in range(3)))
        said = self.run_tool(jobs=1)
        self.assertLess(said.index("net_2"), said.index("net_0"))

    def test_a_list_exports_nothing(self):
        self.assertEqual(self.run_tool(list=True), "resnet_a 224 resnet\n")
        self.assertFalse((self.folder / "cache").exists())

    def test_graphs_stay_outside_the_repository(self):
        with self.assertRaisesRegex(measured.Error, "--cache: expected a folder outside the repository"):
            self.run_tool(cache=ROOT / "build" / "graphs")

    def test_a_second_run_on_the_same_folder_is_refused(self):
        (self.folder / "cache").mkdir()
        with (self.folder / "cache" / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with self.assertRaisesRegex(measured.Error, "another run fills this folder"):
                self.run_tool()

    def test_an_index_of_other_columns_is_refused(self):
        (self.folder / "cache").mkdir()
        (self.folder / "cache" / "index.csv").write_text("net,file\n")
        with self.assertRaisesRegex(measured.Error, "index.csv: expected the columns net,family,.* found net,file"):
            self.run_tool()

    def others(self, *nets, python=None, **changes):
        """What measured_others.py prints of these nets."""
        self.python.write_text(python or OTHERS)
        settings = dict(cache=self.folder / "cache", nets=list(nets), list=False, retry=False, seconds=60,
                        python=str(self.python))
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(measured_others.work(argparse.Namespace(**{**settings, **changes})), 0)
        return said.getvalue()

    def test_a_net_of_another_table_stands_in_the_index_for_all_its_rows(self):
        self.assertIn("vgg16-86px: 138357544 parameters, 45 nodes", self.others("vgg16-86px"))
        row, = self.rows("index.csv")
        self.assertEqual((row["file"], row["image_size"], row["mode"], row["accepted"]), ("vgg16-86px.onnx", "", "", "1"))
        self.others("vgg19-86px", "op_add")
        self.assertEqual([row["accepted"] for row in self.rows("index.csv")], ["1", "1", "0"])
        self.assertEqual(self.rows("index.csv")[2]["reason"], "expected 143667240 parameters, found 138357544")

    def test_another_net_that_fails_is_tried_again_if_asked_for(self):
        every = self.others(python="#!/bin/sh\necho 'RuntimeError: none'; exit 1\n")
        self.assertIn("vgg16-86px: FAILED: RuntimeError: none", every)
        self.assertNotIn("vgg16", self.others())
        self.assertIn("vgg16-86px: 138357544 parameters", self.others(retry=True))
        with self.assertRaisesRegex(measured.Error, "expected names of --list, found vgg_16"):
            self.others("vgg_16")


class Others(unittest.TestCase):
    def test_a_graph_is_judged_by_the_published_parameters(self):
        net = measured_nets.all_nets()["opt-125m"]
        self.assertEqual(measured_others.judge(net, 125_239_296), (1, ""))
        self.assertEqual(measured_others.judge(net, 126_000_000)[0], 0)
        self.assertEqual(measured_others.judge(measured_nets.all_nets()["gpt3-xl"], 1), (1, ""))  # none is published

    def test_every_axis_of_an_operator_is_open_but_the_kernels(self):
        for name, (_, inputs, _, _) in measured_operators.OPERATORS.items():
            sizes = {size for _, dims in inputs for size in dims if not isinstance(size, str)}
            self.assertEqual(sizes, {3} if name == "op_conv3x3" else set())
            self.assertEqual(inputs[0][1][0], "batch")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
