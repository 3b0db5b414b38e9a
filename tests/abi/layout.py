# SPDX-License-Identifier: Apache-2.0
"""Where the fields of the public structs are on 64-bit machines, as a compiler has it.

A small C program tells, the ledger of check_since.py keeps it: "@8" is a field's offset, "#264" a struct's size.
"""

import os
import pathlib
import subprocess
import tempfile

MARKS = ("@", "#")
KINDS = ("struct", "field")


def program(found):
    """The C program that prints each of the structs and fields found with its number."""
    lines = ["#include <stddef.h>", "#include <stdio.h>"]
    lines += [f'#include "horus/{header}"' for header in sorted({one.header for one in found})]
    lines += ["int main(void) {", "  if (sizeof(void*) != 8) return 0;"]
    for one in (one for one in found if one.kind in KINDS):
        number = "sizeof({})" if one.kind == "struct" else "offsetof({}, {})"
        mark = MARKS[one.kind == "struct"]
        lines.append(f'  printf("{one.name} {mark}%zu\\n", {number.format(*one.name.split("."))});')
    return "\n".join([*lines, "  return 0;", "}", ""])


def measured(folder, found, emulator=()):
    """name -> "@8" or "#264" by the compiler that CC names; nothing on machines that are not of 64 bits."""
    with tempfile.TemporaryDirectory() as scratch:
        source, binary = pathlib.Path(scratch) / "layout.c", pathlib.Path(scratch) / "layout"
        source.write_text(program(found), encoding="utf-8")
        compiler = [os.environ.get("CC", "cc"), "-std=c99", "-I", pathlib.Path(folder).parent]
        subprocess.run([*compiler, source, "-o", binary], check=True)
        told = subprocess.run([*emulator, binary], check=True, capture_output=True, text=True).stdout
    return dict(line.split() for line in told.splitlines())


def breaks(now, kept):
    """Whether a field or struct that is `now` so breaks programs that know it as `kept`. One that grew does not."""
    if now is None or kept is None:
        return False
    return int(now[1:]) < int(kept[1:]) if now[0] == kept[0] == "#" else now != kept


def differences(found, kept):
    """Each struct and field that is not as the ledger keeps it: moved, or not accepted yet."""
    for name, now in found.items():
        before = kept.get(name)
        if breaks(now, before):
            yield f"{name} is {now}, expected {before}"
        elif now != before:
            yield f"{name} is {now}, and the ledger has {before or 'nothing'}: scripts/abi-accept takes it over"
