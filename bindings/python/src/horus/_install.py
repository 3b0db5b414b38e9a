# SPDX-License-Identifier: Apache-2.0
"""How to install the package: the one place in Python that says so (in C++: src/base/python_package.h)."""

from __future__ import annotations


def install(extra: str) -> str:
    """The command that brings an extra. Never by the package's name alone: no index has it, and whoever registers it there
    would run code on our users' machines."""
    return f"pip install './bindings/python[{extra}]' in the sources of libhorus, or with a wheel 'WHEEL.whl[{extra}]'"
