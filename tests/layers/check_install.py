# SPDX-License-Identifier: Apache-2.0
"""Checks that nothing advises to install libhorus by its name alone, and that programs say how to install it in one place
a language.

No package index has that name: whoever registers it there would run code on the machines of those who do as they are told.
Usage: check_install.py REPOSITORY_ROOT. Prints each place with its line; exit status 1 if any.
"""

import pathlib
import re
import sys

# Of pip and others: "install libhorus", "install -q 'libhorus[report]'", "-m pip install libhorus==1"; no path, no libhorus-dev.
BY_NAME = re.compile(r"install\s+(?:-\S+\s+)*[\"'`]?libhorus(?!\.a\b|\.so\b|[\w/-])|(?<![\w/])libhorus\[", re.IGNORECASE)
FROM_SOURCES = "bindings/python["
SAID_IN = {"src/base/python_package.h", "bindings/python/src/horus/_install.py"}
PROGRAMS = ("src/", "bindings/", "bench/", "include/")
SKIPPED = {"build", "out", ".git", "shared", "check_install.py", "check_install_test.py"}


def problems(name, text):
    for number, line in enumerate(text.splitlines(), 1):
        if BY_NAME.search(line):
            yield f"{name}:{number}: advises to install libhorus by its name, which nobody owns: {line.strip()}"
        if FROM_SOURCES in line and name.startswith(PROGRAMS) and name not in SAID_IN:
            yield f"{name}:{number}: says how to install the package: expected a call of what {' or '.join(sorted(SAID_IN))} has"


def texts(folder):
    for path in sorted(folder.iterdir()):
        if path.name in SKIPPED:
            continue
        if path.is_dir():
            yield from texts(path)
        elif path.is_file():
            try:
                yield path, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                pass


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found = []
    read = 0
    for path, text in texts(root):
        read += 1
        found += problems(path.relative_to(root).as_posix(), text)
    for problem in found:
        print(problem)
    print(f"install: {read} files, {len(found)} places")
    return 1 if found or not read else 0


if __name__ == "__main__":
    sys.exit(main())
