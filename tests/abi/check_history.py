# SPDX-License-Identifier: Apache-2.0
"""Checks of each commit that changed the baseline of the binary interface that a break came with a new revision.

Usage: check_history.py ROOT
The SONAME, which holds the revision, stands in the baseline. Exit status 1 and a line per fault; without a history nothing
is checked.
"""

import subprocess
import sys

import binary_abi

BASELINE = "tests/abi/baseline.abi"


def fault(old, new):
    """What is wrong with putting the baseline `new` in the place of `old`, or None."""
    before, after = binary_abi.Offer(old), binary_abi.Offer(new)
    breaks, _ = binary_abi.changes(before, after)
    if breaks and before.soname == after.soname:
        return f"breaks {before.soname} without a new revision: {breaks[0]}"
    return None


def git(root, *arguments):
    done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def main():
    root = sys.argv[1]
    commits = git(root, "log", "--format=%h", "--", BASELINE).split()
    found, compared = [], 0
    for commit in commits:
        old = git(root, "show", f"{commit}~:{BASELINE}")
        if old:
            compared += 1
            if wrong := fault(old, git(root, "show", f"{commit}:{BASELINE}")):
                found.append(f"{commit}: {BASELINE}: {wrong}")
    if commits and git(root, "diff", "HEAD", "--name-only", "--", BASELINE):
        with open(f"{root}/{BASELINE}", encoding="utf-8") as file:
            if wrong := fault(git(root, "show", f"HEAD:{BASELINE}"), file.read()):
                found.append(f"working tree: {BASELINE}: {wrong}")
    print("\n".join(found) or f"{compared} changes of the baseline: none breaks without a new revision")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
