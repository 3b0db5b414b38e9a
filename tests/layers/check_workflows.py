# SPDX-License-Identifier: Apache-2.0
"""Checks the hosted checks: least rights, actions pinned by commit, and no step that the project's scripts do not hold.

Usage: check_workflows.py REPOSITORY_ROOT. Prints each problem with its line; exit status 1 if any. Their syntax is checked
where they run, by actionlint (job `workflows`).
"""

import pathlib
import re
import sys

USES = re.compile(r"^\s*(?:- )?uses: (\S+)(.*)$")
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
OURS = re.compile(r"(?:^|[\s\"'])((?:\./)?(?:scripts|tests|bindings|bench|docs|\.github)/[\w./-]+)")


def problems(name, text, root):
    lines = text.splitlines()
    if "SPDX-License-Identifier: Apache-2.0" not in lines[0]:
        yield f"{name}:1: no SPDX line"
    if not re.search(r"^permissions:\n  contents: read$", text, re.M):
        yield f"{name}:1: expected the rights of the whole file to be 'contents: read'; a job that needs more says so itself"
    for number, line in enumerate(lines, 1):
        uses = USES.match(line)
        if uses and not uses[1].startswith("./") and not (PINNED.fullmatch(uses[1]) and re.match(r" # v\d", uses[2])):
            yield f"{name}:{number}: expected an action pinned by its commit, with '# v<version>', found {uses[1]}"
        if uses and uses[1].startswith("actions/checkout@"):
            inputs = re.match(r"        with:\n(?:          .*\n)*", "\n".join(lines[number:]) + "\n")
            if not inputs or "persist-credentials: false" not in inputs[0]:
                yield f"{name}:{number}: expected persist-credentials: false"
        if re.search(r"\brun:|^          ", line) or (uses and uses[1].startswith("./")):
            for path in OURS.findall(line.split(" #")[0]):
                if not (root / path).exists():
                    yield f"{name}:{number}: {path} does not exist"
        if "pull_request_target" in line:
            yield f"{name}:{number}: pull_request_target gives strangers' code rights"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found, read = [], 0
    for path in sorted((root / ".github/workflows").glob("*.yml")):
        read += 1
        found += problems(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"), root)
    for problem in found:
        print(problem)
    print(f"workflows: {read} files, {len(found)} problems")
    return 1 if found or not read else 0


if __name__ == "__main__":
    sys.exit(main())
