# SPDX-License-Identifier: Apache-2.0
"""What machines do that the plan did not expect: partitions, batch systems, others' MPS, packages that do not fit. Usage: see fresh_machine.py."""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import tempfile
import types
import unittest
import unittest.mock

from fresh_machine import ROOT, FreshMachine, main, sys

sys.path.insert(0, str(ROOT / "bench" / "profile"))

import counters
import gpu
import link
import mps
import zoo

ONE_RUN = ("--kinds", "isolated", "--batches", "1")
TELLS = """
import os

def tells(batch):
    with open(os.path.join(os.path.dirname(__file__), "pipes_of_a_worker"), "w") as file:
        file.write(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", ""))
    return 0.002, 100
"""
DCGMI = """#!/bin/sh
while :; do echo 'GPU 0     0.900   0.500   0.300   N/A     0.250'; sleep 0.05; done
"""


class Machine(FreshMachine):
    def test_a_partitioned_gpu_is_refused(self):
        (self.fake / "mig").touch()
        code, said = self.run_tool("quick", more=ONE_RUN)
        self.assertEqual((code, self.journal()), (2, []))
        self.assertIn("GPU 0 is partitioned (MIG mode is on): expected a whole GPU", said)

    def test_the_gpu_that_a_batch_system_chose_is_taken(self):
        self.environment["CUDA_VISIBLE_DEVICES"] = "3,1"
        code, said = self.run_tool("quick", more=ONE_RUN)
        self.assertEqual(code, 2)
        self.assertIn("--index 3: NVML lists 1 GPUs", said)
        code, said = self.run_tool("quick", more=(*ONE_RUN, "--index", "0"))
        self.assertEqual(code, 0, said)

    def test_a_package_that_does_not_fit_torch_costs_its_nets_alone(self):
        package = self.folder / "packages" / "torchvision.py"
        package.parent.mkdir()
        package.write_text("raise RuntimeError('operator torchvision::nms does not exist')\n")
        self.environment["PYTHONPATH"] = str(package.parent)
        code, said = self.run_tool("quick", more=(*ONE_RUN, "--net", "alexnet"))
        self.assertEqual(code, 0, said)
        self.assertIn("left out, because torchvision cannot be imported (RuntimeError: operator torchvision::nms does not exist): "
                      "alexnet\n", said)
        self.assertEqual([one[1] for one in self.outcomes()], ["quick"])

    def test_nobody_becomes_a_client_of_an_mps_daemon_that_is_not_ours(self):
        pipes = self.folder / "pipes"
        pipes.mkdir()
        self.nets.write_text(TELLS)
        self.environment["CUDA_MPS_PIPE_DIRECTORY"] = str(pipes)
        for daemon, found in ((False, str(pipes)), (True, "/dev/null")):
            self.out = self.folder / f"out{daemon}"
            if daemon:
                (pipes / "control").touch()
            code, said = self.run_tool("tells", more=ONE_RUN)
            self.assertEqual(code, 0, said)
            self.assertEqual((self.folder / "pipes_of_a_worker").read_text(), found)
            self.assertEqual("mps of others" in self.manifest()["sessions"][0]["notes"], daemon)

    def test_the_manifest_is_beside_the_rows_of_a_profiler_that_was_killed(self):
        self.nets.write_text("def quick(batch):\n    return 0.002, 500\n\ndef stays(batch):\n    return 3600, 100\n")
        process = self.start("quick", "stays", more=ONE_RUN)
        self.until(lambda: self.journal() and (self.out / "manifest.json").exists(), process)
        process.kill()
        process.wait()
        process.stderr.close()
        session, = self.manifest()["sessions"]
        self.assertEqual((session["ended"], session["gpu"]["driver"]), ("not yet", "580.0-fake"))
        self.assert_nobody_left()

    @unittest.skipUnless(importlib.util.find_spec("pynvml"), "nvidia-ml-py is not installed; its stand-in has no hardware counters")
    def test_counters_kept_to_the_administrator_leave_dcgm(self):
        (self.fake / "gpm").touch()
        (self.fake / "gpm_secret").touch()
        programs = self.folder / "bin"
        programs.mkdir()
        (programs / "dcgmi").write_text(DCGMI)
        (programs / "dcgmi").chmod(0o755)
        self.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
        code, said = self.run_tool("quick", more=(*ONE_RUN, "--window", "0.5"))
        self.assertEqual(code, 0, said)
        session, = self.manifest()["sessions"]
        self.assertEqual(session["counters"], "dcgm")
        self.assertIn("nvmlGpmSampleGet", session["not_told"])
        self.assertAlmostEqual(self.journal()[0]["sm_active_pct"], 50)


    @unittest.skipIf(importlib.util.find_spec("pynvml"), "nvidia-ml-py is installed")
    def test_a_packed_copy_of_nvidia_ml_py_serves_where_it_is_not_installed(self):
        code, said = self.run_tool("quick", more=ONE_RUN)
        self.assertEqual(code, 0, said)
        (self.tool / "nvml").mkdir()
        (self.tool / "pynvml.py").rename(self.tool / "nvml" / "pynvml.py")
        shutil.rmtree(self.tool / "__pycache__", ignore_errors=True)
        code, said = self.run_tool("quick", more=("--kinds", "isolated", "--batches", "1,2"))
        self.assertEqual((code, len(self.journal())), (0, 2), said)
        shutil.rmtree(self.tool / "nvml")
        code, said = self.run_tool("quick", more=ONE_RUN)
        self.assertEqual(code, 2)
        self.assertIn("nvidia-ml-py is not installed", said)

    @unittest.skipUnless(importlib.util.find_spec("pynvml"), "nvidia-ml-py is not installed")
    def test_pack_brings_nvidia_ml_py_along(self):
        self.assertTrue((self.tool / "nvml" / "pynvml.py").exists())


class Parts(unittest.TestCase):
    def test_a_gpu_may_be_chosen_by_its_uuid(self):
        def uuid(index):
            return ("GPU-aa11", "GPU-bb22")[index]

        card = types.SimpleNamespace(count=2, nvml=types.SimpleNamespace(
            NVMLError=RuntimeError, nvmlDeviceGetHandleByIndex=int, nvmlDeviceGetUUID=uuid))
        for visible, index in (("GPU-bb22,GPU-aa11", 1), ("GPU-bb", 1), ("GPU-cc33", 0), ("", 0), ("1", 1)):
            with unittest.mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": visible}):
                self.assertEqual(gpu.Gpu.visible(card), index, visible)

    def test_a_process_that_the_driver_holds_is_left_behind_after_a_while(self):
        class Stuck:
            killed = 0

            def wait(self, timeout):
                raise subprocess.TimeoutExpired("worker", timeout)

            def kill(self):
                self.killed += 1

        stuck = Stuck()
        self.assertIsNone(link.end(stuck, 0.01))
        self.assertEqual(stuck.killed, 1)

    def test_the_pipes_of_mps_lie_where_a_sockets_path_is_long_enough(self):
        for folder, chosen in (("/tmp", None), ("/scratch/" + "x" * 80, "/tmp")):
            with unittest.mock.patch.object(tempfile, "gettempdir", lambda: folder):
                self.assertEqual(mps.short_folder(), chosen)

    def test_lines_of_dcgmi_in_their_kinds(self):
        for line, active in (("GPU 0     0.900   0.500   0.300   N/A     0.250\n", 50), ("GPU 0  0.9  nan  0.3  -  0.25", None),
                             ("GPU 12 1 0.25 0 0 0", 25)):
            row = counters.row_of(line)
            self.assertEqual(row["sm_active_pct"], active, line)
        for line in ("#Entity   GRACT   SMACT   SMOCC   TENSO   DRAMA", "ID", "", "Error: unable to establish a connection",
                     "GPU-I 3  0.9  0.5  0.3  0.1  0.2 0.1"):
            self.assertIsNone(counters.row_of(line), line)

    def test_a_group_of_nets_that_cannot_be_imported_is_named_with_the_reason(self):
        real = importlib.import_module

        def broken(name, *more):
            if name == "nets.vision":
                raise RuntimeError("operator torchvision::nms does not exist\nand more")
            if name.startswith("nets."):
                return types.SimpleNamespace(nets=lambda: [types.SimpleNamespace(name=name)])
            return real(name, *more)

        with unittest.mock.patch.object(importlib, "import_module", broken):
            found, missing = zoo.definitions()
        self.assertEqual(missing, {"vision": "torchvision (RuntimeError: operator torchvision::nms does not exist)"})
        self.assertEqual(len(found), len(zoo.GROUPS) - 1)
        self.assertTrue(pathlib.Path(zoo.zoo_folder()).exists())


if __name__ == "__main__":
    main()
