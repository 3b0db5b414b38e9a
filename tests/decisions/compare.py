# SPDX-License-Identifier: Apache-2.0
"""Compares what a program prints with a committed text, and shows where they part.

Usage: compare.py GOLDEN PROGRAM [ARGUMENT...]      (HORUS_UPDATE=1 in the environment writes GOLDEN instead)"""

import difflib
import itertools
import os
import pathlib
import subprocess
import sys

SHOWN = 40  # lines of the difference


def main():
    golden = pathlib.Path(sys.argv[1])
    printed = subprocess.run(sys.argv[2:], check=True, stdout=subprocess.PIPE, text=True).stdout
    if os.environ.get("HORUS_UPDATE") == "1":
        golden.write_text(printed, encoding="utf-8")
    expected = golden.read_text(encoding="utf-8")
    if printed == expected and printed:
        print(f"{len(printed.splitlines())} lines, all as in {golden.name}")
        return 0
    difference = difflib.unified_diff(expected.splitlines(), printed.splitlines(), str(golden), "now", n=1, lineterm="")
    print(*itertools.islice(difference, SHOWN), sep="\n")
    print("\nIf decisions were meant to change: HORUS_UPDATE=1 ctest -R decisions.golden, and say why in the commit.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
