# SPDX-License-Identifier: Apache-2.0
"""Checks that libraries and programs are hardened as SECURITY.md says.

Usage: check_hardening.py linked|compiled BUILD FILE...
linked: no segment is writable and executable, the stack is not executable, relocations are read-only before any code
runs, nothing relocates code, programs are position-independent. compiled: and functions with arrays guard their stack,
on x86-64 each exported one is a marked target of indirect branches, and BUILD/compile_commands.json, if it is there,
asks for the rest in each file of ours. Exit status 1 and a line per fault.
"""

import json
import pathlib
import platform
import re
import shlex
import subprocess
import sys


BRANCHES = {"x86_64": "-fcf-protection", "aarch64": "-mbranch-protection=standard"}
FLAGS = ["-fstack-protector-strong", "-fstack-clash-protection", "-D_FORTIFY_SOURCE=2"]
FLAGS += [flag for machine, flag in BRANCHES.items() if machine == platform.machine()]
ENDBR64 = bytes.fromhex("f30f1efa")


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True).stdout


def unmarked(path):
    """Exported functions of x86-64 that do not begin with endbr64."""
    if "X86-64" not in readelf("-h", path):
        return []
    loads = [[int(word, 16) for word in found] for found in
             re.findall(r"LOAD\s+(0x\w+)\s+(0x\w+)\s+0x\w+\s+(0x\w+)", readelf("-l", path))]
    code = pathlib.Path(path).read_bytes()
    functions = re.findall(r"([0-9a-f]{16})\s+\d+ FUNC\s+GLOBAL\s+\w+\s+\d+ (\w+)", readelf("--dyn-syms", path))
    return [name for address, name in functions for at, first, size in loads
            if first <= int(address, 16) < first + size and not code[int(address, 16) - first + at:].startswith(ENDBR64)]


def unasked(build):
    """Files of src that the build compiles without one of FLAGS."""
    database = pathlib.Path(build) / "compile_commands.json"
    entries = json.loads(database.read_text()) if database.exists() else []
    source = str(pathlib.Path(__file__).resolve().parents[2] / "src") + "/"
    return [f"{entry['file']}: compiled without {flag}" for entry in entries if entry["file"].startswith(source)
            for flag in FLAGS if flag not in shlex.split(entry["command"])]


def faults(path, compiled):
    segments, dynamic = readelf("-l", path), readelf("-d", path)
    stack = re.search(r"GNU_STACK(?:\s+0x\w+){5}\s+([RWE ]+?)\s+0x", segments)
    loads = re.findall(r"LOAD(?:\s+0x\w+){5}\s+([RWE ]+?)\s+0x", segments)
    hidden = unmarked(path) if compiled else []
    rules = [
        (loads and not any("W" in flags and "E" in flags for flags in loads), "a segment is writable and executable"),
        (stack and "E" not in stack[1], "its stack is executable"),
        ("GNU_RELRO" in segments, "relocations are not made read-only"),
        (re.search(r"\bBIND_NOW\b|FLAGS_1.*\bNOW\b", dynamic), "relocations are bound when first used"),
        ("TEXTREL" not in dynamic, "its code is relocated"),
        (re.search(r"Type:\s+DYN", readelf("-h", path)), "it is not position-independent"),
        (not compiled or "__stack_chk_fail" in readelf("--dyn-syms", path), "no function guards its stack"),
        (not hidden, f"indirect branches may not reach {', '.join(hidden)}"),
    ]
    return [fault for holds, fault in rules if not holds]


def main():
    compiled, build, *paths = sys.argv[1] == "compiled", *sys.argv[2:]
    found = [f"{path}: {fault}" for path in paths for fault in faults(path, compiled)] + (unasked(build) if compiled else [])
    print("\n".join(found) or f"{len(paths)} files are hardened")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
