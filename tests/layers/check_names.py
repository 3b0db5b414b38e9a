# SPDX-License-Identifier: Apache-2.0
"""Checks that no two files under src/ define a type of the same name outside an anonymous namespace.

Two such types in namespace horus link silently and corrupt memory (the one-definition rule). Usage:
check_names.py REPOSITORY_ROOT. Prints each clash with its files; exit status 1 if any.
"""

import collections
import pathlib
import re
import sys

# A definition at the left margin: our format indents members and local types.
TYPE = re.compile(r"^(?:class|struct|union|enum(?: class)?)\s+(\w+)(?:\s+final)?(?:\s*:[^:;{][^;{]*)?\s*\{")
OPEN = re.compile(r"^namespace\s*(\w[\w:]*)?\s*\{")
CLOSE = re.compile(r"^\}\s*//\s*namespace")


def definitions(path):
    scopes = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        opened = OPEN.match(line)
        if opened:
            scopes.append(opened.group(1))
        elif CLOSE.match(line) and scopes:
            scopes.pop()
        elif None not in scopes:
            found = TYPE.match(line)
            if found:
                yield "::".join([*scopes, found.group(1)]), number


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    places = collections.defaultdict(list)
    for pattern in ("src/**/*.h", "src/**/*.cc"):
        for path in sorted(root.glob(pattern)):
            for name, number in definitions(path):
                places[name].append(f"{path.relative_to(root).as_posix()}:{number}")
    clashes = {name: found for name, found in places.items() if len(found) > 1}
    for name, found in sorted(clashes.items()):
        print(f"{name}: defined in {', '.join(found)}")
    print(f"names: {len(places)} types, {len(clashes)} clashes")
    return 1 if clashes or not places else 0


if __name__ == "__main__":
    sys.exit(main())
