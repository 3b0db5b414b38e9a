# SPDX-License-Identifier: Apache-2.0
"""Whole campaigns on a make-believe GPU, and everything that can go wrong in one. Usage: see fresh_machine.py."""
import fcntl
import importlib.util
import os
import resource

from fresh_machine import FreshMachine, main, signal, subprocess, sys, time

ISOLATED = ("--kinds", "isolated", "--batches", "1,2,4")
DCGMI = """#!PYTHON
import time
print("#Entity   GRACT   SMACT   SMOCC   TENSO   DRAMA\\nID", flush=True)
while True:
    print("GPU 0     0.900   0.500   0.300   N/A     0.250", flush=True)
    time.sleep(0.05)
"""


class Campaign(FreshMachine):
    def test_rows_pairs_and_triples_in_the_documented_layout(self):
        code, said = self.run_tool("quick", "slow", more=("--batches", "2", "--sharing", "time-slice"))
        self.assertEqual(code, 0, said)
        rows = self.rows("dataset.csv")
        first = next(row for row in rows if row["net"] == "quick" and row["batch"] == "2" and "repeat" not in row["note"])
        self.assertEqual((first["gpu"], first["gpu_util_pct"], first["gpu_util_max_pct"], first["mem_bw_util_pct"],
                          first["power_w"], first["mem_mib"]), ("h200", "60", "60", "30", "160", "1000"))
        self.assertGreaterEqual(float(first["step_time_us"]), 4000)  # it sleeps so long at least
        self.assertTrue((self.out / first["graph"]).exists())
        pairs, jobs = self.rows("pairs.csv"), {row["job"] for row in self.rows("jobs.csv")}
        self.assertTrue(pairs)
        self.assertLessEqual({row[name] for row in pairs for name in ("job_a", "job_b")}, jobs)
        self.assertTrue(self.rows("groups.csv"))
        session, = self.manifest()["sessions"]
        self.assertEqual((session["ended"], session["gpu"]["driver"]), ("done", "580.0-fake"))
        self.assert_nobody_left()

    def test_graphs_of_the_zoo_are_copied_unless_they_lie_elsewhere(self):
        once = ("--net", "unet", "--minutes", "0.001")
        self.run_tool(more=once)
        self.assertTrue((self.out / "graphs" / "unet.onnx").exists())
        self.out = self.folder / "second"
        self.run_tool(more=(*once, "--graphs-at", "../zoo"))
        self.assertFalse((self.out / "graphs").exists())

    def test_distinct_samples_are_the_drivers_own(self):
        self.run_tool("slow", more=("--kinds", "isolated", "--batches", "1", "--window", "1"))
        run = self.journal()[0]
        self.assertLess(run["samples_distinct"], run["samples"])
        self.assertGreaterEqual(run["samples_distinct"], 8)  # one every 100 ms in the fake

    def test_hardware_counters_are_means_over_the_window_where_the_gpu_has_them(self):
        if importlib.util.find_spec("pynvml") is None:
            self.skipTest("nvidia-ml-py is not installed; its stand-in has no hardware counters")
        (self.fake / "gpm").touch()
        self.run_tool("quick", more=("--kinds", "isolated", "--batches", "1"))
        run = self.journal()[0]
        self.assertEqual((run["sm_active_pct"], run["dram_active_pct"], run["tensor_active_pct"]), (20, 100, 50))
        self.assertNotIn("sm_occupancy_pct", run)
        self.assertEqual(self.manifest()["sessions"][0]["counters"], "nvml")

    def test_out_of_memory_is_a_result_and_larger_batches_are_not_tried(self):
        code, said = self.run_tool("full", more=("--kinds", "isolated", "--batches", "1,2,4,8"))
        self.assertEqual(code, 0, said)
        self.assertEqual(self.outcomes()[:3], [("isolated", "full", 1, "ok"), ("isolated", "full", 2, "ok"),
                                               ("isolated", "full", 4, "oom")])
        self.assertEqual(len(self.outcomes()), 3)

    def test_a_hook_that_raises_is_named_with_its_line_and_the_others_go_on(self):
        code, said = self.run_tool("raises", "quick", more=("--kinds", "isolated", "--batches", "1,2,4,8,16"))
        self.assertEqual(code, 1)
        self.assertIn("KeyError: 'no such layer'", said)
        self.assertIn("nets.py:", said)
        self.assertEqual([run["batch"] for run in self.journal() if run["outcome"] == "error"], [1, 2, 4])
        self.assertEqual(sum(run["outcome"] == "ok" for run in self.journal()), 5)

    def test_a_process_that_dies_is_an_outcome_and_its_net_is_given_up(self):
        code, said = self.run_tool("dies", "quick", more=ISOLATED)
        self.assertEqual(code, 1)
        self.assertIn("signal 9", said)
        self.assertEqual([one for one in self.outcomes() if one[1] == "dies"],
                         [("isolated", "dies", 1, "died"), ("isolated", "dies", 2, "died")])
        self.assertEqual(sum(run["outcome"] == "ok" for run in self.journal()), 3)
        self.assert_nobody_left()

    def test_a_gpu_that_disappears_ends_the_campaign_and_rows_are_kept(self):
        code, said = self.run_tool("quick", "loses", more=ISOLATED)
        self.assertEqual(code, 3)
        self.assertIn("GPU is lost", said)
        self.assertEqual(len(self.rows("dataset.csv")), 3)
        self.assertEqual(self.manifest()["sessions"][0]["ended"], "broke off")
        self.assert_nobody_left()

    def test_a_campaign_goes_on_where_it_was(self):
        self.run_tool("quick", more=ISOLATED)
        before = self.journal()
        code, said = self.run_tool("quick", "slow", more=ISOLATED)
        self.assertEqual(code, 0)
        self.assertIn("3 runs are there already", said)
        self.assertEqual(self.journal()[:3], before)
        self.assertEqual([one[1] for one in self.outcomes()[3:]], ["slow"] * 3)

    def test_nothing_is_left_behind_by_a_signal_and_the_next_command_goes_on(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
            process = self.start("quick", "endless", more=("--kinds", "isolated", "--batches", "1", "--window", "60",
                                                           "--window-max", "600"))
            self.until(lambda: any((self.fake / "procs").iterdir()), process)
            process.send_signal(number)
            process.wait()
            process.stderr.close()
            self.assertEqual(process.returncode, -number if number == signal.SIGKILL else 130)
            self.assert_nobody_left()
            for entry in (self.fake / "procs").iterdir():
                entry.unlink()
        code, said = self.run_tool("quick", more=ISOLATED)
        self.assertEqual((code, len(self.rows("dataset.csv"))), (0, 3), said)

    def test_a_full_disk_is_said_and_finished_rows_are_kept(self):
        self.run_tool("quick", more=("--kinds", "isolated", "--batches", "1"))
        before = (self.out / "runs.jsonl").read_bytes()
        limit = len(before) + 100  # the next line does not fit
        code, said = self.run_tool("quick", more=ISOLATED, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(code, 4, said)
        self.assertIn("the disk is full; 1 finished runs are kept", said)
        self.assertEqual((self.out / "runs.jsonl").read_bytes(), before)
        self.assert_nobody_left()

    def test_a_disk_that_is_full_before_the_first_run(self):
        code, said = self.run_tool(more=("--net", "unet", "--kinds", "isolated"), preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (500, 500)))
        self.assertEqual(code, 4, said)
        self.assertRegex(said, r"unet\.onnx: the disk is full; 0 finished runs are kept")
        self.assertFalse((self.out / "graphs" / "unet.onnx").exists())
        self.assert_nobody_left()

    def test_somebody_who_comes_to_the_gpu_is_named_and_the_run_beside_is_no_row(self):
        self.idle()
        with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as other:
            self.environment["VISITOR"] = str(other.pid)
            code, said = self.run_tool("quick", "visited", more=ISOLATED)
            other.stdin.close()
        self.assertEqual(code, 3, said)
        self.assertRegex(said, rf"now in use by process {other.pid} \(python.*, 512 MiB\)")
        self.assertEqual([one[1] for one in self.outcomes()], ["quick"] * 3)
        self.assert_nobody_left()

    def test_in_a_container_memory_is_that_of_the_card_and_own_processes_are_no_strangers(self):
        self.idle()
        (self.fake / "foreign").touch()
        code, said = self.run_tool("quick", more=("--batches", "2", "--kinds", "isolated,pairs", "--sharing", "time-slice"))
        self.assertEqual(code, 0, said)
        run = self.journal()[0]
        self.assertEqual((run["process_mib"], run["mem_mib"]), (None, 1000))
        self.assertEqual(len(self.rows("pairs.csv")), 1)

    def test_what_the_driver_does_not_allow_is_in_the_manifest(self):
        self.idle()
        (self.fake / "secret").touch()
        code, said = self.run_tool("quick", more=("--kinds", "isolated", "--batches", "1"))
        self.assertEqual(code, 0, said)
        self.assertEqual(self.journal()[0]["mem_mib"], 500)
        self.assertIn("nvmlDeviceGetComputeRunningProcesses", self.manifest()["sessions"][0]["not_told"])

    def test_a_driver_that_answers_slowly_is_noted(self):
        (self.fake / "slow").write_text("150")
        self.run_tool("quick", more=("--kinds", "isolated", "--batches", "1", "--window", "1"))
        self.assertLess(self.journal()[0]["sample_hz"], 7)
        self.assertIn("it answers slowly", self.manifest()["sessions"][0]["notes"]["nvml"])

    def test_precisions_that_the_gpu_lacks_are_left_out_and_noted(self):
        (self.fake / "capability").write_text("70")
        self.run_tool("quick", more=("--kinds", "isolated", "--batches", "1", "--precisions", "fp32,tf32,amp,amp-bf16"))
        self.assertEqual({run["precision"] for run in self.journal()}, {"fp32", "amp"})
        self.assertIn("tf32, bf16, amp-bf16", self.manifest()["sessions"][0]["notes"]["precisions"])

    def test_a_gpu_for_one_process_at_a_time_has_no_groups_in_time_slices(self):
        (self.fake / "mode").write_text("3")
        code, said = self.run_tool("quick", more=("--batches", "1", "--kinds", "isolated,pairs", "--sharing", "time-slice"))
        self.assertEqual((code, {one[0] for one in self.outcomes()}), (0, {"isolated"}), said)
        self.assertIn("EXCLUSIVE_PROCESS", said)

    def test_dcgm_tells_where_nvml_has_no_counters_and_ends_with_the_profiler(self):
        programs = self.folder / "bin"
        programs.mkdir()
        (programs / "dcgmi").write_text(DCGMI.replace("PYTHON", sys.executable))
        (programs / "dcgmi").chmod(0o755)
        self.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
        self.run_tool("quick", more=("--kinds", "isolated", "--batches", "1", "--window", "0.5"))
        run = self.journal()[0]
        self.assertAlmostEqual(run["sm_active_pct"], 50)
        self.assertAlmostEqual(run["dram_active_pct"], 25)
        self.assertNotIn("tensor_active_pct", run)  # N/A
        self.assertEqual(self.manifest()["sessions"][0]["counters"], "dcgm")
        self.assert_nobody_left()
        process = self.start("endless", more=("--kinds", "isolated", "--batches", "1", "--window", "60", "--window-max", "600"))
        self.until(lambda: any((self.fake / "procs").iterdir()), process)
        process.kill()
        process.wait()
        process.stderr.close()
        self.assert_nobody_left()

    def test_dcgm_without_its_service_says_why(self):
        programs = self.folder / "bin"
        programs.mkdir()
        (programs / "dcgmi").write_text("#!/bin/sh\necho 'Error: unable to establish a connection'; exit 255\n")
        (programs / "dcgmi").chmod(0o755)
        self.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
        code, said = self.run_tool("quick", more=("--kinds", "isolated", "--batches", "1"))
        self.assertEqual(code, 0, said)
        self.assertIn("unable to establish", self.manifest()["sessions"][0]["not_told"]["dcgmi"])

    def test_nothing_fits_into_a_moment(self):
        code, said = self.run_tool("quick", more=(*ISOLATED, "--minutes", "0.001"))
        self.assertEqual((code, self.outcomes()), (0, []), said)


class NotBegun(FreshMachine):
    def refused(self, *nets, more=()):
        code, said = self.run_tool(*nets, more=more)
        self.assertEqual(code, 2, said)
        self.assertFalse((self.out / "runs.jsonl").exists())
        return said

    def test_nvml_is_absent(self):
        self.environment["LD_LIBRARY_PATH"] = str(self.folder)
        self.assertIn("libnvidia-ml.so.1", self.refused("quick"))

    def test_the_driver_does_not_answer(self):
        (self.fake / "uninit").touch()
        self.assertIn("NVML does not answer", self.refused("quick"))

    def test_a_gpu_in_use_is_said_by_whom(self):
        self.idle()
        with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as other:
            (self.fake / "procs" / str(other.pid)).write_text("512")
            said = self.refused("quick")
            other.stdin.close()
        self.assertRegex(said, rf"in use by process {other.pid} \(python.*, 512 MiB\)")
        self.assertIn("--in-use-ok goes on", said)

    def test_a_gpu_in_use_by_somebody_unseen(self):
        self.idle()
        (self.fake / "util").write_text("60")
        (self.fake / "secret").touch()
        self.assertIn("utilisation 60 %", self.refused("quick"))

    def test_torch_is_absent(self):
        (self.tool / "torch.py").unlink()
        self.environment["PYTHONPATH"] = str(self.folder)
        (self.folder / "sitecustomize.py").write_text(
            "import importlib.util as u\nfind = u.find_spec\n"
            "u.find_spec = lambda name, *more: None if name == 'torch' else find(name, *more)\n")
        self.assertIn("PyTorch is not installed", self.refused("quick"))

    def test_training_afterwards_needs_the_command_before(self):
        self.assertIn("no command '/nowhere/horus'", self.refused("quick", more=("--train", "--horus", "/nowhere/horus")))

    def test_a_folder_of_another_gpu_or_of_a_profiler_that_runs(self):
        self.run_tool("quick", more=("--kinds", "isolated", "--batches", "1"))
        code, said = self.run_tool("quick", more=(*ISOLATED, "--gpu", "a100-80gb"))
        self.assertEqual((code, len(self.journal())), (2, 1))
        self.assertIn("expected runs of a100-80gb, found runs of h200", said)
        folder = os.open(self.out, os.O_RDONLY)
        fcntl.flock(folder, fcntl.LOCK_EX)
        code, said = self.run_tool("quick", more=ISOLATED)
        os.close(folder)
        self.assertEqual(code, 2)
        self.assertIn("another profiler writes to it", said)

    def test_unknown_nets_files_and_gpus(self):
        for more, expected in ((("--net", "resnet5"), "did you mean resnet50"),
                               (("--net", "nowhere.py:net"), "no file"),
                               (("--net", f"{self.nets}:quick", "--index", "3"), "NVML lists 1 GPUs"),
                               (("--batches", "0"), "above 0"), (("--precisions", "fp8"), "found 'fp8'")):
            self.assertIn(expected, self.refused(more=more))

    def test_two_nets_of_one_name(self):
        other = self.folder / "other.py"
        other.write_text(self.nets.read_text())
        self.assertIn("two nets are called quick", self.refused("quick", more=("--net", f"{other}:quick")))


if __name__ == "__main__":
    main()
