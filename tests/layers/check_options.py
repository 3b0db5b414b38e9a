# SPDX-License-Identifier: Apache-2.0
"""Checks that every face of the placer tells every option of src/place/placer_options.h by its name.

The C ABI, the command and grid.yaml read the records themselves; what these files write out by hand is held here: the
struct of the C ABI, the C++ face, and the Python and Go bindings. Usage: check_options.py REPOSITORY_ROOT. Prints each option
that a face lacks; exit status 1 if any.
"""

import pathlib
import re
import sys

RECORDS = "src/place/placer_options.h"
FACES = ("include/horus/place.h", "include/horus/horus.hpp", "bindings/python/src/core/placer.cc", "bindings/go/place.go")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    names = re.findall(r"^HORUS_OPTION\([\w:]+, (\w+),", (root / RECORDS).read_text(encoding="utf-8"), re.MULTILINE)
    wrong = [] if names else [f"{RECORDS}: no options found"]
    for face in FACES:
        words = set(re.findall(r"\w+", (root / face).read_text(encoding="utf-8")))
        wrong += [f"{face}: lacks {name}" for name in names if name not in words]
    print(f"options: {len(names)} options, {len(wrong)} problems")
    print("\n".join(f"check_options: {line}" for line in wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
