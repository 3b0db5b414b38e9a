# SPDX-License-Identifier: Apache-2.0
"""Checks the recipes of CONTRIBUTING.md against the tree: each names a thing that is there and the files that know it.

A row of the table is `| to add | as | files |`. In src, include and bindings the files listed are exactly those that hold the
name, whatever its case; of the others that are listed (docs, tests) each holds it. Usage: check_recipes.py REPOSITORY_ROOT.
Prints each difference; exit status 1 if any.
"""

import pathlib
import re
import sys

KNOWN = ("src", "include", "bindings")
LEFT_OUT = ("_core.pyi", ".hbundle", "README.md")  # made by tools; prose


def holders(root, name):
    for folder in KNOWN:
        for path in (root / folder).rglob("*"):
            if path.is_file() and not path.name.endswith(LEFT_OUT) and "__pycache__" not in path.parts:
                if name in path.read_bytes().lower():
                    yield path.relative_to(root).as_posix()


def recipes(text):
    for line in text.split("## How to", 1)[1].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and re.fullmatch(r"`[^`]+`", cells[1]):
            yield cells[1].strip("`"), re.findall(r"`([^`]+)`", cells[2])


def main():
    root, wrong, rows = pathlib.Path(sys.argv[1]).resolve(), [], 0
    for name, listed in recipes((root / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        rows += 1
        found = set(holders(root, name.lower().encode()))
        told = {path for path in listed if path.split("/")[0] in KNOWN and not path.endswith(LEFT_OUT)}
        wrong += [f"{name}: {path} holds it and is not listed" for path in sorted(found - told)]
        wrong += [f"{name}: {path} is listed and does not hold it" for path in sorted(told - found)]
        for path in sorted(set(listed) - told):
            if not (root / path).is_file() or name.lower().encode() not in (root / path).read_bytes().lower():
                wrong.append(f"{name}: {path} is listed and does not hold it")
    if rows == 0:
        wrong.append("no recipes found")
    print("\n".join(f"check_recipes: CONTRIBUTING.md: {line}" for line in wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
