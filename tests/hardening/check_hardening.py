# SPDX-License-Identifier: Apache-2.0
"""Checks that libraries and programs are hardened as SECURITY.md says.

Usage: check_hardening.py linked|compiled FILE...
linked: no segment is writable and executable, the stack is not executable, relocations are read-only before any code
runs, nothing relocates code, programs are position-independent. compiled: and functions with arrays guard their stack.
Exit status 1 and a line per fault.
"""

import re
import subprocess
import sys


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True).stdout


def faults(path, compiled):
    segments, dynamic = readelf("-l", path), readelf("-d", path)
    stack = re.search(r"GNU_STACK(?:\s+0x\w+){5}\s+([RWE ]+?)\s+0x", segments)
    loads = re.findall(r"LOAD(?:\s+0x\w+){5}\s+([RWE ]+?)\s+0x", segments)
    rules = [
        (loads and not any("W" in flags and "E" in flags for flags in loads), "a segment is writable and executable"),
        (stack and "E" not in stack[1], "its stack is executable"),
        ("GNU_RELRO" in segments, "relocations are not made read-only"),
        (re.search(r"\bBIND_NOW\b|FLAGS_1.*\bNOW\b", dynamic), "relocations are bound when first used"),
        ("TEXTREL" not in dynamic, "its code is relocated"),
        (re.search(r"Type:\s+DYN", readelf("-h", path)), "it is not position-independent"),
        (not compiled or "__stack_chk_fail" in readelf("--dyn-syms", path), "no function guards its stack"),
    ]
    return [fault for holds, fault in rules if not holds]


def main():
    found = [f"{path}: {fault}" for path in sys.argv[2:] for fault in faults(path, sys.argv[1] == "compiled")]
    print("\n".join(found) or f"{len(sys.argv) - 2} files are hardened")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
