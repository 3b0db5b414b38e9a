# SPDX-License-Identifier: Apache-2.0
"""scripts/packages.sh waits for a process that holds a lock of apt, and names it. Usage: apt_lock_test.py SOURCE

apt-get, sudo, dpkg-query (which has no package) and sleep (which takes no time) are stand-ins."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = sys.argv.pop(1)
LISTS = "Could not get lock /var/lib/apt/lists/lock. It is held by process 41 (apt-get)"
DPKG = "Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 42 (unattended-upgr)"
STAND_INS = {
    "sudo": 'exec "$@"',
    "dpkg-query": "exit 1",
    "sleep": 'echo "sleep $1" >>calls',
    "apt-get": """
echo "$1" >>calls
[ "$(grep -c "^$1" calls)" -gt "$(cat "$1.fails")" ] && exit
cat "$1.says" >&2
exit 100""",
}


def ensure(update=(0, ""), install=(0, "")):
    """Installs a package where each command of apt-get fails so many times, saying so. Returns what was run, and the calls."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for program, text in STAND_INS.items():
            (folder / program).write_text(f"#!/bin/sh\n{text}\n")
            (folder / program).chmod(0o755)
        for command, (fails, says) in {"update": update, "install": install}.items():
            (folder / f"{command}.fails").write_text(str(fails))
            (folder / f"{command}.says").write_text(f"E: {says}\nE: Unable to lock it\n")
        script = 'source "$0/scripts/packages.sh" && ensure_packages anything'
        done = subprocess.run(["bash", "-c", script, SOURCE], cwd=folder, capture_output=True, text=True, check=False,
                              env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "TMPDIR": name})
        return done, (folder / "calls").read_text().split("\n")[:-1]


class AptLock(unittest.TestCase):
    def test_waits_for_the_holder_and_says_so_once(self):
        done, calls = ensure(update=(3, LISTS), install=(2, DPKG))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(calls, ["update", "sleep 5"] * 3 + ["update"] + ["install", "sleep 5"] * 2 + ["install"])
        self.assertEqual((done.stdout.count(LISTS), done.stdout.count(DPKG), done.stdout.count("waiting")), (1, 1, 2))

    def test_gives_up_after_ten_minutes_and_names_the_holder(self):
        done, calls = ensure(update=(60, LISTS), install=(10**6, DPKG))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(calls.count("sleep 5"), 120)
        self.assertIn(DPKG, done.stderr)
        self.assertIn("after 10 minutes another process still holds", done.stderr)
        self.assertNotIn("network", done.stderr)

    def test_waits_for_no_other_failure(self):
        for at in ("update", "install"):
            done, calls = ensure(**{at: (10**6, "Failed to fetch Packages")})
            self.assertNotEqual(done.returncode, 0)
            self.assertNotIn("sleep 5", calls)
            self.assertIn("Failed to fetch", done.stderr)
            self.assertIn("check the network", done.stderr)


unittest.main()
