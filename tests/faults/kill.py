# SPDX-License-Identifier: Apache-2.0
"""Kills an embedder that snapshots, again and again at random points; each start checks that nothing was lost or booked twice.

Usage: kill.py PROGRAM [TIMES [SEED]]
Prints how often it was killed, at how many of them in the middle of writing a snapshot, and how many jobs there were.
"""

import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

LONGEST_S = 0.2  # of life after the program said that it is up


def one_life(program, folder, life_s):
    process = subprocess.Popen([program, folder / "state", folder / "journal"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = process.stdout.readline()  # checked and running, or nothing
    if said:
        time.sleep(life_s)
    process.kill()
    _, complaint = process.communicate()
    complaint = complaint.decode(errors="replace")
    if process.returncode != -signal.SIGKILL:  # nobody but us may end it
        complaint += f"ended by itself with {process.returncode}"
    return said.startswith(b"restored"), complaint


def main():
    program = sys.argv[1]
    times = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    draw = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        halfway = 0
        for life in range(times + 1):
            good, complaint = one_life(program, folder, draw.random() * LONGEST_S)
            if not good or complaint:
                print(f"life {life}: {complaint}")
                return 1
            halves = list(folder.glob("state.new-*"))
            halfway += bool(halves)
            for half in halves:
                half.unlink()
        lines = (folder / "journal").read_text(encoding="utf-8").splitlines()
    started = sum(line[0] == "+" for line in lines)
    print(f"killed {times} times, {halfway} times while a snapshot was being written; {started} jobs started, none lost or booked twice")
    return 0 if started > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
