# SPDX-License-Identifier: Apache-2.0
"""Compares what libhorus.so exports and needs with the committed lists; looks for untested functions and structs.

Usage: check_abi.py symbols LIBRARY LIST | needed LIBRARY LIST | bound LIBRARY LIST | tested LIST TEST_FOLDER |
                    structs INCLUDE_FOLDER FIRST_SIZES
Exit status 1 and a line per difference when they disagree; the message says how to accept a wanted change.
"""

import pathlib
import re
import subprocess
import sys

import declarations

FILLED_BY_US = {"horus_policy_candidate", "horus_sim_event"}  # structs that callbacks get and no caller makes
NO_FIRST_SIZE = FILLED_BY_US | {"horus_error"}  # an error is written to any size


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library):
    # "0000000000012345 T horus_plan_get@@HORUS_0"; the version node itself is listed as "A HORUS_0".
    lines = run("nm", "-D", "--defined-only", library).splitlines()
    return sorted(line.split()[-1].replace("@@", " ") for line in lines)


def needed(library):
    # Without version numbers, which differ from system to system. Which pieces of abseil are needed depends on what
    # the optimiser inlines: they count as one. The dynamic linker itself is named after the machine, and
    # sanitizers add a runtime of their own: both are left out.
    names = re.findall(r"\(NEEDED\).*\[(.+?)\]", run("readelf", "-d", library))
    names = [name for name in names if not re.match(r"ld-linux|lib[a-z]+san\.", name)]
    return sorted({re.sub(r"libabsl_\w+", "libabsl_*", re.sub(r"(\.so).*", r"\1", name)) for name in names})


def listed(path):
    return [line for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def compare(found, path):
    expected = listed(path)
    differences = [f"missing: {name}" for name in expected if name not in found]
    differences += [f"not in the list: {name}" for name in found if name not in expected]
    if differences:
        differences.append(f"If the change is wanted, edit {path} in the same commit and say so in tests/abi/README.md's terms.")
    return differences


def interposable(library, path):
    """Of the library's own functions those that it calls by name: another libhorus in the process could answer."""
    called = set(re.findall(r"\b(\w+)@", run("readelf", "-rW", library)))
    names = [line.split()[0] for line in listed(path)]
    return [f"a call of {name} from inside may end in another library" for name in names if name in called]


def untested(path, folder):
    text = "".join(p.read_text(encoding="utf-8") for p in sorted(pathlib.Path(folder).glob("*.[ch]")))
    called = set(re.findall(r"\b(horus_\w+)\s*\(", text))
    names = [line.split()[0] for line in listed(path) if line.startswith("horus_")]
    return [f"no contract test calls {name}" for name in names if name not in called]


def without_first_size(structs, text):
    """Those that have no row in src/capi/struct_sizes.h, in words of its text, and need one."""
    known = set(re.findall(r"^HORUS_FIRST_RELEASE\((\w+), ", text, re.M)) | NO_FIRST_SIZE
    return [name for name in structs if name not in known]


def unguarded(include, first_sizes):
    """Structs that do not tell their size or lack their initialiser; those of the top folder without a first size."""
    text = "".join(path.read_text(encoding="utf-8") for path in declarations.headers(include, deep=True))
    found = declarations.read_headers(include, deep=True)
    names = {one.name for one in found}
    structs = [one.name for one in found if one.kind == "struct"]
    problems = [f"{name} does not tell its size" for name in structs if f"{name}.struct_size" not in names]
    wanted = [f"#define {name.upper()}_INIT HORUS_INIT({name})" for name in structs if name not in FILLED_BY_US]
    problems += [f"no header has: {line}" for line in wanted if f"\n{line}\n" not in text]
    frozen = [one.name for one in declarations.read_headers(include) if one.kind == "struct"]
    lacking = without_first_size(frozen, pathlib.Path(first_sizes).read_text(encoding="utf-8"))
    return problems + [f"{pathlib.Path(first_sizes).name} lacks {name}: scripts/abi-accept adds it" for name in lacking]


def main():
    kind, first, second = sys.argv[1:4]
    if kind == "symbols":
        problems = compare(exported(first), second)
    elif kind == "needed":
        problems = compare(needed(first), second)
    elif kind == "bound":
        problems = interposable(first, second)
    elif kind == "structs":
        problems = unguarded(first, second)
    else:
        problems = untested(first, second)
    for problem in problems:
        print(problem)
    print(f"{kind}: {'as committed' if not problems else 'differs'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
