# SPDX-License-Identifier: Apache-2.0
"""Runs programs that were compiled at older revisions of the ABI against the library of today.

Usage: run_clients.py LIBRARY FOLDER OTHER
FOLDER holds client-ABI.REVISION-MACHINE, one a revision: those of today's revision must find all that they found then, the
others must be refused by the loader and, forced past it, be told no by horus_abi_check. OTHER: a client of today that
claims another revision. Exit status 77 where no kept client is of this machine.
"""

import os
import pathlib
import platform
import subprocess
import sys
import tempfile

SKIPPED, TOLD_NO = 77, 3


def run(client, library, soname):
    """Its (exit status, output) with the library under this name."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / soname).symlink_to(pathlib.Path(library).resolve())
        result = subprocess.run([client], env=dict(os.environ, LD_LIBRARY_PATH=folder), capture_output=True, text=True,
                                check=False)
    return result.returncode, result.stdout + result.stderr


def main():
    library, folder, other = sys.argv[1:4]
    today = pathlib.Path(library).resolve().name  # libhorus.so.0.1
    problems, seen = [], 0
    code, text = run(other, library, today)
    if code != TOLD_NO or "told no" not in text:
        problems.append(f"a client of another revision: expected {TOLD_NO}, found {code}: {text}")
    for client in sorted(pathlib.Path(folder).glob(f"client-*-{platform.machine()}")):
        seen += 1
        soname = "libhorus.so." + client.name.split("-")[1]
        code, text = run(client, library, soname)
        expected = 0 if soname == today else TOLD_NO
        print(f"{client.name}: {code}, {text.strip()}")
        if code != expected:
            problems.append(f"{client.name}: expected exit status {expected}, found {code}")
        if soname != today and run(client, library, today)[0] == 0:
            problems.append(f"{client.name} ran although its library {soname} is not there")
    for problem in problems:
        print(problem)
    if not seen:
        print(f"skipped: no client of {platform.machine()} is kept")
    return 1 if problems else 0 if seen else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
