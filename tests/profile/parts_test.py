# SPDX-License-Identifier: Apache-2.0
"""The profiler's parts that need neither torch nor a GPU. Usage: parts_test.py NVML_FOLDER REPOSITORY_ROOT."""
import ast
import csv
import functools
import io
import math
import pathlib
import sys
import tempfile
import types
import unittest
import unittest.mock

ROOT = pathlib.Path(sys.argv[2])
sys.path.insert(0, str(ROOT / "bench" / "profile"))

import budget
import clocks
import design
import dry
import options as command_line
import store
import wire
import worker
import zoo
from made_up import alone, together


class InFolder(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def rows(self, name):
        with open(self.folder / name, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))


class Wire(unittest.TestCase):
    @staticmethod
    def tensor(kind, payload, name=b"w"):
        return wire.field(8, name) + wire.encode(2 << 3) + wire.encode(kind) + wire.field(9, payload)

    def model(self, *tensors):
        node = wire.field(4, b"Relu") + wire.field(6, b"/home/somebody/net.py")
        graph = wire.field(1, node) + b"".join(wire.field(5, one) for one in tensors)
        return wire.encode(1 << 3) + wire.encode(8) + wire.field(7, graph) + wire.field(14, b"")

    def test_float_initialisers_lose_their_payload_small_integers_keep_it(self):
        light = wire.light_model(self.model(self.tensor(1, b"FLOAT"), self.tensor(7, b"INTEGERS")), {})
        self.assertNotIn(b"FLOAT", light)
        self.assertIn(b"INTEGERS", light)

    def test_large_integer_tensors_lose_their_payload(self):
        self.assertLess(len(wire.light_model(self.model(self.tensor(7, b"x" * 1025)), {})), 200)
        self.assertGreater(len(wire.light_model(self.model(self.tensor(7, b"x" * 1000)), {})), 1000)

    def test_source_lines_of_the_exporter_are_dropped(self):
        self.assertNotIn(b"somebody", wire.light_model(self.model(), {}))

    def test_metadata_is_what_was_given(self):
        light = wire.light_model(self.model(), {"horus.net": "mine"})
        entries = [payload for number, _, _, payload in wire.fields(light) if number == 14]
        self.assertEqual([bytes(one) for one in entries], [wire.field(1, b"horus.net") + wire.field(2, b"mine")])

    def test_what_is_light_stays_as_it_is(self):
        for path in sorted((ROOT / "examples/models/graphs").glob("*.onnx"))[::16]:
            light = wire.light_model(path.read_bytes(), {})
            self.assertEqual(wire.light_model(light, {}), light, path.name)

    def test_a_broken_message_is_refused(self):
        with self.assertRaisesRegex(ValueError, "ends behind"):
            wire.light_model(b"\x3a\x7fshort", {})


class Zoo(unittest.TestCase):
    def test_unknown_net_names_its_neighbours(self):
        with self.assertRaisesRegex(zoo.UnknownNet, "did you mean bert_base"):
            zoo.choose(["bert_bas"], None, pathlib.Path("."))

    def test_a_net_may_be_a_file_or_a_module_that_are_there(self):
        with tempfile.TemporaryDirectory() as held:
            folder = pathlib.Path(held)
            (folder / "mine").mkdir()
            (folder / "mine" / "net.py").write_text("def small(batch):\n    return batch\n")
            chosen = zoo.choose(["mine/net.py:small", "mine.net:small"], "runs", folder)
            self.assertEqual(list(chosen), [f"{folder}/mine/net.py:small", "mine.net:small"])
            self.assertEqual([zoo.load_function(net)(3) for net in chosen], [3, 3])
            for wrong, said in (("mine/none.py:small", "no file"), ("nowhere.net:small", "no module nowhere")):
                with self.assertRaisesRegex(zoo.UnknownNet, said):
                    zoo.choose([wrong], "runs", folder)
            with self.assertRaisesRegex(zoo.UnknownNet, "no function 'large'"):
                zoo.load_function("mine.net:large")

    def test_at_least_13_families_need_torch_alone(self):
        self.assertGreaterEqual(len({runs.family for runs in zoo.ZOO.values() if runs.needs == "torch"}), 13)

    def test_every_planned_net_has_a_committed_graph_of_its_family(self):
        with open(ROOT / "examples/models/zoo.csv", newline="", encoding="utf-8") as file:
            families = {row["net"]: row["family"] for row in csv.DictReader(file)}
        self.assertEqual({net: families.get(net) for net in zoo.ZOO}, {net: runs.family for net, runs in zoo.ZOO.items()})

    def test_job_names_are_unique_and_short_enough_for_a_table(self):
        names = [job.name for job in design.isolated_jobs(zoo.ZOO)]
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual(max(map(len, names)), zoo.JOB_NAME_LENGTH)


class Cuda:
    """Events whose times are given; knows how many were recorded and not waited for."""

    def __init__(self, times):
        self.times, self.open = iter(times), 0

    def Event(self, enable_timing):
        cuda, made = self, type("Event", (), {})()
        assert enable_timing

        def record():
            made.at, cuda.open = next(cuda.times), cuda.open + 1

        def synchronize():
            cuda.open -= 1

        made.record, made.synchronize = record, synchronize
        made.elapsed_time = lambda later: later.at - made.at
        return made


class Clocks(unittest.TestCase):
    def test_every_step_is_timed_once_in_order_and_few_are_queued(self):
        cuda = Cuda([0, 5, 7, 12, 20, 21, 22, 40])
        clock, found = clocks.DeviceClock(cuda), []
        for _ in range(8):
            found.append(clock.mark())
            self.assertLessEqual(cuda.open, clocks.STEPS_AHEAD + 2)
        self.assertEqual(found, [None] * clocks.BEGUN_BEFORE + [5, 2, 5, 8, 1])


class Window(unittest.TestCase):
    """Steps of a tenth of a second, on paper: orders come at their times."""

    def run_with(self, *orders, **more):
        now, waiting, said = [0.0], list(orders), []

        def step():
            now[0] = round(now[0] + 0.1, 3)

        def poll():
            return waiting.pop(0)[1] if waiting and waiting[0][0] <= now[0] else None

        plan = {"warm_s": 0.2, "warm_steps": 1, "skip": 1, "min_s": 0.3, "min_steps": 3, "max_s": 5, **more}
        with unittest.mock.patch.object(worker, "time", types.SimpleNamespace(monotonic=lambda: now[0])):
            result = worker.run(types.SimpleNamespace(poll=poll), lambda message: said.append((now[0], message["event"])),
                                step, types.SimpleNamespace(mark=iter([None] + [100.0] * 99).__next__), plan)
        return result, said

    def test_only_steps_that_began_and_ended_while_all_ran_count(self):
        result, said = self.run_with((0.5, {"do": "window"}), (1.5, {"do": "stop", "until": 1.25}))
        self.assertEqual(said, [(0.4, "warm"), (0.9, "enough")])
        self.assertEqual((result["opened"], result["closed"]), (0.5, 1.25))
        self.assertEqual(result["steps"], 6)  # 0.6 to 1.2 without the one that may have begun before; not 1.3 to 1.5

    def test_warm_up_counts_from_the_first_step_that_is_over(self):
        _, said = self.run_with((0.9, {"do": "window"}), (1.5, {"do": "stop", "until": 1.5}), warm_s=0.45)
        self.assertEqual(said[0], (0.7, "warm"))

    def test_a_window_of_slow_steps_ends_at_its_longest(self):
        _, said = self.run_with((0.5, {"do": "window"}), (3.0, {"do": "stop", "until": 3.0}), min_steps=1000, max_s=1)
        self.assertEqual(said[1], (1.5, "enough"))


class Plan(unittest.TestCase):
    @staticmethod
    @functools.lru_cache(maxsize=None)
    def planned(*more):
        _, options = command_line.arguments(["plan", *more], "")
        options.only = {}
        return dry.planned(options, dict(zoo.ZOO))

    def counts(self, runs):
        sizes = [len(run.get("jobs", "1")) for run in runs if not run["repeat"]]
        return [sizes.count(size) for size in (1, 2, 3)]

    def test_half_an_hour_is_planned_to_give_80_runs_and_40_pairs_at_the_stated_costs(self):
        runs = self.planned("--minutes", "30")
        alone, pairs, triples = self.counts(runs)
        self.assertGreaterEqual(alone, 80)
        self.assertGreaterEqual(pairs, 40)
        self.assertGreaterEqual(triples, 10)
        self.assertGreaterEqual(len({run["family"] for run in runs if run["kind"] == "isolated"}), 13)

    def test_an_hour_is_planned_to_give_200_runs_and_150_pairs_of_13_families(self):
        for more in ((), ("--sharing", "time-slice")):  # MPS may not be had
            runs = self.planned("--minutes", "60", *more)
            alone, pairs, triples = self.counts(runs)
            self.assertGreaterEqual(alone, 200)
            self.assertGreaterEqual(pairs, 150)
            self.assertGreaterEqual(triples, 40)
            family = {run["job"]: run["family"] for run in runs if run["kind"] == "isolated"}
            self.assertGreaterEqual(len({family[job] for run in runs if len(run.get("jobs", "")) == 2 for job in run["jobs"]}), 13)

    def test_the_zoo_has_enough_for_200_runs_within_an_hour(self):
        self.assertGreaterEqual(self.counts(self.planned("--minutes", "60", "--kinds", "isolated"))[0], 200)

    def test_ten_minutes_see_13_families_and_repeat_for_the_noise(self):
        runs = self.planned("--minutes", "10")
        self.assertGreaterEqual(len({run["family"] for run in runs if run["kind"] == "isolated"}), 13)
        for kind in ("isolated", "shared"):
            self.assertTrue(any(run["repeat"] for run in runs if run["kind"] == kind), kind)

    def test_the_same_groups_are_run_under_both_modes(self):
        runs = [run for run in self.planned("--minutes", "30") if run["kind"] == "shared" and len(run["jobs"]) == 2]
        sliced, mps = ({tuple(sorted(run["jobs"])) for run in runs if run["sharing_mode"] == mode}
                       for mode in ("time-slice", "mps"))
        self.assertGreaterEqual(len(sliced & mps), 40)

    def test_every_file_that_is_packed_is_python_3_8(self):
        files = [ROOT / "bench/profile/horus-profile", *(ROOT / "bench/profile").glob("*.py"), *(ROOT / "examples/models/nets").glob("*.py")]
        self.assertGreater(len(files), 30)
        for path in files:
            ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 8))

    def test_the_tool_names_no_call_that_changes_a_gpu(self):
        for path in sorted((ROOT / "bench/profile").glob("*.py")):
            self.assertNotRegex(path.read_text(), r"nvml\w*(Set|Reset|Clear|Create|Destroy)[A-Z]|nvidia-smi\s+-|set_default_", path.name)


class Design(unittest.TestCase):
    def runs(self, count):
        return [alone(f"job{i}", gpu_util_pct=100.0 * i / count, mem_bw_util_pct=50.0 * (i % 5) / 5,
                      step_mean_us=10.0 ** (2 + i % 4)) for i in range(count)]

    def test_three_batches_of_every_net_come_first_and_one_net_of_each_family_before_a_second(self):
        jobs = design.isolated_jobs(zoo.ZOO)
        first = jobs[:3 * len(zoo.ZOO)]
        self.assertEqual(len({job.net for job in first}), len(zoo.ZOO))
        self.assertEqual({job.precision for job in first}, {"fp32"})
        families = list(dict.fromkeys(job.family for job in jobs))
        self.assertEqual([runs.family for runs in zoo.ZOO.values()][:len(families)], families)
        self.assertGreaterEqual(len(jobs), 200)

    def test_a_large_card_is_asked_for_larger_batches_after_the_first_levels(self):
        usual, large = design.isolated_jobs(zoo.ZOO), design.isolated_jobs(zoo.ZOO, large=True)
        self.assertEqual(large[:3 * len(zoo.ZOO)], usual[:3 * len(zoo.ZOO)])
        self.assertEqual(max(job.batch for job in large if job.net == "resnet50"), 4 * zoo.ZOO["resnet50"].batches[-1])
        self.assertLess(set(usual), set(large))

    def test_the_product_of_what_was_asked_for(self):
        jobs = design.isolated_jobs({"unet": zoo.ZOO["unet"]}, {"batches": [1, 2], "precisions": ["fp32", "amp"]})
        self.assertEqual([(job.batch, job.precision) for job in jobs], [(1, "fp32"), (1, "amp"), (2, "fp32"), (2, "amp")])

    def test_a_net_without_a_batch_axis_is_asked_for_no_batch(self):
        jobs = design.isolated_jobs({"gcn_cora": zoo.ZOO["gcn_cora"]}, {"batches": [8, 16]})
        self.assertEqual([job.batch for job in jobs], [0])

    def test_same_runs_same_plan_and_no_group_twice(self):
        runs = self.runs(20)
        first = design.groups(runs, 2, 100000, [], 30)
        self.assertEqual(first, design.groups(list(reversed(runs)), 2, 100000, [], 30))
        self.assertEqual(len({tuple(sorted(one)) for one in first}), 30)

    def test_groups_that_were_run_are_not_planned_again(self):
        first = design.groups(self.runs(6), 2, 100000, [], 10)
        rest = design.groups(self.runs(6), 2, 100000, first, 100)
        self.assertFalse(set(first) & set(rest))
        self.assertEqual(len(first) + len(rest), 6 * 7 // 2)

    def test_groups_fit_into_the_memory_together(self):
        runs = [alone("small", mem_mib=1000.0), alone("large", mem_mib=60000.0)]
        self.assertEqual(design.groups(runs, 2, 80000, [], 9), [("large", "small"), ("small", "small")])

    def test_jobs_are_used_about_equally(self):
        used = [job for one in design.groups(self.runs(20), 2, 100000, [], 40) for job in one]
        self.assertLessEqual(max(used.count(job) for job in set(used)), 8)
        self.assertEqual(len(set(used)), 20)

    def test_groups_cover_the_utilisation_plane(self):
        runs = self.runs(20)
        util = {run["job"]: run["gpu_util_pct"] for run in runs}
        cells = {tuple(sorted(int(util[job] // 34) for job in one)) for one in design.groups(runs, 2, 100000, [], 30)}
        self.assertEqual(len(cells), 6)  # thirds of utilisation, both members: all unordered combinations

    def test_triples_of_many_jobs(self):
        self.assertEqual(len(design.groups(self.runs(100), 3, 100000, [], 5)), 5)


class Store(InFolder):
    def store(self):
        return store.Store(self.folder, "here")

    def test_a_run_is_a_row_of_the_dataset_at_once(self):
        self.store().add(alone("a"))
        row, = self.rows("dataset.csv")
        self.assertEqual((row["net"], row["gpu_util_pct"], row["step_time_us"], row["sharing_mode"], row["graph"]),
                         ("a", "50", "1000", "exclusive", "graphs/a.onnx"))
        self.assertIn("12 distinct samples of 40", row["note"])

    def test_a_net_without_a_batch_axis_has_a_blank_batch(self):
        self.store().add(alone("graph", batch=0, dims="nodes=10"))
        self.assertEqual(self.rows("dataset.csv")[0]["batch"], "")
        self.assertNotIn("b0", zoo.Job("gcn_cora", "graph network", 0, (("nodes", 10),)).name)

    def test_graphs_that_lie_elsewhere_are_named_there_but_not_those_of_own_nets(self):
        kept = store.Store(self.folder, "here", "../zoo")
        kept.add(alone("a"))
        kept.add(alone("b", net="/somewhere/b.py:b"))
        self.assertEqual([row["graph"] for row in self.rows("dataset.csv")], ["../zoo/a.onnx", "graphs/b.onnx"])

    def test_slowdowns_are_against_the_mean_time_alone(self):
        kept = self.store()
        for run in (alone("a"), alone("a", step_mean_us=1200.0, repeat=1), alone("b"), together("ba", (1500.0, 2200.0))):
            kept.add(run)
        row, = self.rows("pairs.csv")
        self.assertEqual((row["job_a"], row["job_b"]), ("a", "b"))
        self.assertAlmostEqual(float(row["slowdown_a"]), 2.0)
        self.assertAlmostEqual(float(row["slowdown_b"]), 1.5)
        self.assertEqual([one["job"] for one in self.rows("jobs.csv")], ["a", "b"])

    def test_repeats_of_a_pair_are_one_row_and_the_noise(self):
        kept = self.store()
        for run in (alone("a"), alone("b"), together("ab", (2000.0, 2000.0)), together("ab", (2200.0, 2000.0), repeat=1)):
            kept.add(run)
        row, = self.rows("pairs.csv")
        self.assertEqual((row["slowdown_a"], row["note"]), ("2.1", "mean of 2"))
        self.assertEqual(kept.noise()["shared_step_time"]["repeated"], 2)

    def test_two_copies_of_a_job_get_one_slowdown(self):
        kept = self.store()
        kept.add(alone("a"))
        kept.add(together("aa", (2000.0, 3000.0)))
        row, = self.rows("pairs.csv")
        self.assertEqual((row["slowdown_a"], row["slowdown_b"]), ("2.5", "2.5"))

    def test_a_job_twice_as_fast_beside_another_makes_no_row_and_is_counted(self):
        kept = self.store()
        for run in (alone("a"), alone("b"), together("ab", (499.0, 2000.0)), together("aa", (501.0, 501.0))):
            kept.add(run)
        self.assertEqual([(row["job_a"], row["job_b"]) for row in self.rows("pairs.csv")], [("a", "a")])
        self.assertEqual(kept.dropped(), 1)

    def test_triples_have_a_table_of_their_own(self):
        kept = self.store()
        for run in (alone("a"), alone("b"), together("aab", (2000.0, 2000.0, 4000.0))):
            kept.add(run)
        self.assertEqual(self.rows("pairs.csv"), [])
        row, = self.rows("groups.csv")
        self.assertEqual((row["jobs"], row["slowdowns"]), ("a+a+b", "2;2;4"))

    def test_out_of_memory_is_kept_in_the_journal_and_is_no_row(self):
        self.store().add({**alone("a"), "outcome": "oom"})
        self.assertEqual(self.rows("dataset.csv"), [])
        self.assertEqual(len(self.store().runs), 1)

    def test_a_line_cut_short_is_dropped_and_the_rest_kept(self):
        kept = self.store()
        kept.add(alone("a"))
        kept.add(alone("b"))
        data = kept.journal.read_bytes()
        kept.journal.write_bytes(data[:-10])
        again = self.store()
        self.assertEqual([run["job"] for run in again.runs], ["a"])
        again.add(alone("c"))
        self.assertEqual([run["job"] for run in self.store().runs], ["a", "c"])

    def test_a_broken_line_in_the_middle_is_refused_with_its_number(self):
        kept = self.store()
        kept.add(alone("a"))
        kept.journal.write_bytes(b"nonsense\n" + kept.journal.read_bytes())
        with self.assertRaisesRegex(store.NotWritten, "line 1 is no JSON"):
            self.store()


class Budget(unittest.TestCase):
    def setUp(self):
        self.now = 100.0
        self.budget = budget.Budget(2, lambda: self.now)

    def test_costs_are_learned(self):
        before = self.budget.fits("isolated")
        for _ in range(20):
            self.budget.spent("isolated", 20.0)
        self.assertLess(self.budget.fits("isolated"), before / 2)

    def test_nothing_fits_into_no_time(self):
        self.now += 2 * 60
        self.assertEqual(self.budget.fits("shared"), 0)

    def shown(self, terminal):
        stream = io.StringIO()
        stream.isatty = lambda: terminal
        progress = budget.Progress(self.budget, stream)
        progress.show("isolated", "first")
        self.now += 58  # half of what is not kept for the end
        progress.show("shared", "second")
        return stream.getvalue()

    def test_the_bar_shows_the_share_of_the_time_and_what_is_left(self):
        self.assertEqual(self.shown(False), "[........................] 1:56 left, 1 isolated: first\n"
                                            "[############............] 0:58 left, 1 isolated, 1 shared: second\n")
        self.now += 1000
        over = io.StringIO()
        budget.Progress(self.budget, over).show("isolated", "late")
        self.assertIn(f"[{'#' * budget.BAR}] 0:00 left", over.getvalue())

    def test_on_a_terminal_one_line_is_written_again(self):
        shown = self.shown(True)
        self.assertEqual((shown.count("\n"), shown.count("\r\x1b[K")), (0, 2))

    def test_nobody_who_reads_the_bar_any_more_stops_nothing(self):
        class Closed(io.StringIO):
            def write(self, _):
                raise BrokenPipeError

        budget.Progress(self.budget, Closed()).show("isolated", "a run")

    def test_a_share_of_the_time_left(self):
        self.assertTrue(math.isclose(self.budget.moment(0.5) - self.now, self.budget.left() / 2))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
