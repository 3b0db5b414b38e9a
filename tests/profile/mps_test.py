# SPDX-License-Identifier: Apache-2.0
"""The profiler's own MPS daemon, with a make-believe nvidia-cuda-mps-control. Usage: see fresh_machine.py."""
import os

from fresh_machine import FreshMachine, main, signal, time

DAEMON = """#!/usr/bin/env python3
import os, pathlib, signal, subprocess, sys, time
folder = pathlib.Path(os.environ["CUDA_MPS_PIPE_DIRECTORY"])
if "-f" in sys.argv:
    server = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "nvidia-cuda-mps-server", "FOLDER"])
    (folder / "alive").touch()
    while not (folder / "quit").exists():
        time.sleep(0.01)
    STUBBORN or server.kill()
else:
    text = sys.stdin.read()
    if not (folder / "alive").exists():
        sys.exit(1)
    if text.startswith("quit"):
        (folder / "quit").touch()
"""
PAIRS = ("--kinds", "isolated,pairs", "--sharing", "mps", "--batches", "1")


class OwnDaemon(FreshMachine):
    def setUp(self):
        super().setUp()
        self.programs = self.folder / "bin"
        self.programs.mkdir()
        self.environment["PATH"] = f"{self.programs}:{os.environ['PATH']}"
        self.environment["TMPDIR"] = str(self.folder)

    def install(self, text=DAEMON, stubborn=False):
        program = self.programs / "nvidia-cuda-mps-control"
        program.write_text(text.replace("FOLDER", str(self.folder)).replace("STUBBORN", str(stubborn)))
        program.chmod(0o755)

    def assert_gone(self):
        self.assert_nobody_left()
        for _ in range(1200):
            if not list(self.folder.glob("horus-mps-*")):
                return
            time.sleep(0.05)
        self.fail("the daemon's folder is left behind")

    def test_pairs_are_measured_as_mps_and_the_daemon_is_gone_afterwards(self):
        self.install()
        code, said = self.run_tool("quick", "slow", more=PAIRS)
        self.assertEqual(code, 0, said)
        self.assertEqual({row["sharing_mode"] for row in self.rows("pairs.csv")}, {"mps"})
        self.assert_gone()

    def test_a_server_that_outlives_its_daemon_is_ended(self):
        self.install(stubborn=True)
        self.run_tool("quick", more=PAIRS)
        self.assert_gone()

    def test_a_killed_profiler_leaves_no_daemon(self):
        self.install()
        process = self.start("quick", more=("--kinds", "isolated,pairs", "--sharing", "mps", "--batches", "1"))
        self.until(lambda: list(self.folder.glob("horus-mps-*/alive")), process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stderr.close()
        self.assert_gone()

    def test_without_mps_its_time_goes_to_time_slicing_and_the_manifest_says_why(self):
        self.install("#!/bin/sh\necho 'cannot find a device' >&2\nexit 1\n")
        code, said = self.run_tool("quick", more=("--batches", "1", "--kinds", "isolated,pairs"))
        self.assertEqual(code, 0, said)
        self.assertIn("cannot find a device", self.manifest()["sessions"][0]["notes"]["mps"])
        self.assertEqual({row["sharing_mode"] for row in self.rows("pairs.csv")}, {"time-slice"})
        self.assert_gone()

    def test_clients_that_cannot_use_the_gpu_leave_its_time_to_time_slicing(self):
        self.install()
        (self.fake / "no_mps").touch()
        code, said = self.run_tool("quick", more=("--batches", "1", "--kinds", "isolated,pairs"))
        self.assertEqual(code, 0, said)
        self.assertIn("MPS client failed to connect", self.manifest()["sessions"][0]["notes"]["mps"])
        self.assertEqual({row["sharing_mode"] for row in self.rows("pairs.csv")}, {"time-slice"})
        self.assert_gone()


if __name__ == "__main__":
    main()
