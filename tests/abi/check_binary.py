# SPDX-License-Identifier: Apache-2.0
"""Compares a library with the stored baseline of the binary interface, by abidw and abidiff.

Usage: check_binary.py check LIBRARY BASELINE INCLUDE_FOLDER     any difference fails
       check_binary.py judge LIBRARY BASELINE INCLUDE_FOLDER     2: a break; 1: additions; 0: nothing
       check_binary.py write LIBRARY BASELINE INCLUDE_FOLDER     makes the library the baseline
Exit status 77: the library lacks debug information about types (Release, -g1), or the machine or the abidw is another.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import binary_abi

SKIPPED = 77
BREAK = 2


def describe(library, include):
    """The XML of what the library offers, without what differs between machines: its folder, and which libraries it needs."""
    command = ["abidw", "--type-id-style", "hash", "--headers-dir", include, "--drop-private-types", "--no-show-locs",
               "--no-corpus-path", "--no-comp-dir-path", "--exported-interfaces-only", library]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    text = re.sub(r"  <elf-needed>.*?</elf-needed>\n", "", text, flags=re.S)
    return re.sub(r" path='[^']*/(src/[^']*)'", r" path='\1'", text)


def skip(reason):
    print(f"skipped: {reason}")
    return SKIPPED


def compare(text, baseline):
    with tempfile.NamedTemporaryFile("w", suffix=".abi", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        return subprocess.run(["abidiff", baseline, file.name], capture_output=True, text=True, check=False)


def main():
    mode, library, baseline, include = sys.argv[1:5]
    if not shutil.which("abidw"):
        return skip("abidw is not installed (abigail-tools)")
    text = describe(library, include)
    stored = pathlib.Path(baseline).read_text(encoding="utf-8") if mode != "write" else text
    for attribute, what in (("version", "format"), ("architecture", "architecture")):
        expected, found = (re.search(f" {attribute}='([^']*)'", one)[1] for one in (stored, text))
        if expected != found:
            return skip(f"the baseline is of {what} {expected}, what abidw says of the library of {found}")
    if "<class-decl name='horus_job' size-in-bits" not in text:
        return skip(f"{library} has no debug information about types")
    if mode == "write":
        pathlib.Path(baseline).write_text(text, encoding="utf-8")
        return 0
    breaks, additions = binary_abi.changes(binary_abi.Offer(stored), binary_abi.Offer(text))
    if mode == "judge":
        print("\n".join([f"break: {line}" for line in breaks] + [f"new: {line}" for line in additions]) or "as stored")
        return BREAK if breaks else int(bool(additions))
    result = compare(text, baseline)
    print(result.stdout + result.stderr, end="")
    if result.returncode == 0 and not breaks and not additions:
        print("binary interface: as stored")
        return 0
    print("\n".join([f"break: {line}" for line in breaks] + [f"new: {line}" for line in additions]))
    print(f"abidiff says {result.returncode}. If the change is wanted: scripts/abi-accept, see tests/abi/README.md")
    return 1


if __name__ == "__main__":
    sys.exit(main())
