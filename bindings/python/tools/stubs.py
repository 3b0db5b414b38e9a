# SPDX-License-Identifier: Apache-2.0
"""Writes the stub of horus._core from its docstrings, whose first lines are signatures.

Usage: stubs.py [--check] FILE. --check compares instead of writing; exit status 1 if they differ. Run with the built
package on the path.
"""

from __future__ import annotations

import difflib
import importlib
import pathlib
import sys

HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Made by bindings/python/tools/stubs.py from the module's docstrings; do not edit.
import collections.abc
import typing

import numpy
import numpy.typing
from typing_extensions import Buffer

from .predict import DemandFlag

'''
PLAIN = {int: "int", str: "str", bytes: "bytes", float: "float"}


def signature(doc, name):
    line = (doc or "").strip().splitlines()[0] if doc else ""
    return line.replace("collections.abc.Buffer", "Buffer") if line.startswith(name + "(") else None


def member(cls, name, value):
    if isinstance(value, property):
        found = signature(value.__doc__, name)
        assert found, f"{cls.__name__}.{name} states no signature"
        return [f"    @property\n    def {found}: ..."]
    if name == "__fields__":
        return ["    __fields__: typing.ClassVar[dict[str, str]]"]
    if name == "__hash__" and value is None:
        return ["    __hash__: typing.ClassVar[None]  # type: ignore[assignment]"]
    if name == "__getstate__":
        return ["    def __getstate__(self) -> dict[str, typing.Any]: ..."]
    if name == "__setstate__":
        return ["    def __setstate__(self, state: dict[str, typing.Any], /) -> None: ..."]
    found = signature(getattr(value, "__doc__", None), name)
    if found is None and name == "__init__":  # made by the library alone
        return ["    def __init__(self, *args: typing.Any, **kwargs: typing.Any) -> None: ..."]
    if found is None:
        assert name.startswith("_"), f"{cls.__name__}.{name} states no signature"
        return []
    static = "    @staticmethod\n" if isinstance(cls.__dict__[name], staticmethod) else ""
    return [f"{static}    def {found}: ..."]


def of_class(cls):
    lines = [f"@typing.final\nclass {cls.__name__}:"]
    for name, value in sorted(vars(cls).items()):
        if name not in ("__doc__", "__module__", "__new__", "__dict__", "__weakref__"):
            lines += member(cls, name, getattr(cls, name) if isinstance(value, staticmethod) else value)
    return "\n".join(lines)


def stub():
    module = importlib.import_module("horus._core")
    parts = []
    for name, value in sorted(vars(module).items(), key=lambda item: (isinstance(item[1], type), item[0])):
        if name.startswith("__"):
            continue
        if isinstance(value, type):
            parts.append("\n" + of_class(value) + "\n")
        elif callable(value):
            found = signature(value.__doc__, name)
            assert found, f"{name} states no signature"
            parts.append(f"def {found}: ...\n")
        elif name == "demand_dtype":
            parts.append("demand_dtype: numpy.dtype[numpy.void]\n")
        else:
            parts.append(f"{name}: {PLAIN[type(value)]}\n")
    return HEAD + "".join(parts)


def main():
    check = sys.argv[1] == "--check"
    path = pathlib.Path(sys.argv[-1])
    made = stub()
    if not check:
        path.write_text(made)
        return 0
    there = path.read_text()
    sys.stdout.writelines(difflib.unified_diff(there.splitlines(True), made.splitlines(True), str(path), "made"))
    return int(there != made)


if __name__ == "__main__":
    sys.exit(main())
