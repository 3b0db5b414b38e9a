# SPDX-License-Identifier: Apache-2.0
"""The GPU types."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from . import _core, _table
from ._args import instance, integer, sequence, text
from ._core import Gpu, MigProfile

__all__ = ["Catalogue", "Gpu", "MigProfile", "gpus"]


class Catalogue:
    """The known GPU types, built in or extended by your own. Immutable: share freely."""

    __slots__ = ("_added", "_gpus", "_handle")

    def __init__(self) -> None:
        self._handle = _core.CatalogueHandle()
        self._added: tuple[Gpu, ...] = ()
        self._gpus = self._handle.all()

    def extend(self, gpus: Sequence[Gpu]) -> Catalogue:
        """A new catalogue with further types behind those of this one."""
        added = sequence(gpus, Gpu, "gpus")
        return self._with(self._handle.extend(added), added)

    def _with(self, handle: _core.CatalogueHandle, added: tuple[Gpu, ...]) -> Catalogue:
        made = Catalogue.__new__(Catalogue)
        made._handle, made._added, made._gpus = handle, self._added + added, handle.all()
        return made

    def find(self, name: str) -> int:
        """Position of the type with that name or alias. Raises NotFound, which suggests near names."""
        return self._handle.find(text(name, "name"))

    def __getitem__(self, key: int | str) -> Gpu:
        position = self.find(key) if isinstance(key, str) else integer(key, "position", 0, 2**63 - 1)
        if position >= len(self._gpus):
            raise IndexError(f"position: expected less than {len(self._gpus)}, found {position}")
        return self._gpus[position]

    def __len__(self) -> int:
        return len(self._gpus)

    def __iter__(self) -> Iterator[Gpu]:
        return iter(self._gpus)

    @property
    def names(self) -> list[str]:
        """In the order of positions."""
        return [gpu.name for gpu in self._gpus]

    def to_frame(self) -> Any:
        """A row a type (pandas)."""
        return _table.frame(self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        rows = [gpu.to_dict() for gpu in self._gpus]
        return {name: [row[name] for row in rows] for name in rows[0] if name != "source"} if rows else {}

    def __repr__(self) -> str:
        return f"<horus.Catalogue of {len(self)} GPU types>"

    def _repr_html_(self) -> str:
        return _table.to_html(repr(self), self._columns())

    def __reduce__(self) -> tuple[Any, ...]:
        return (_remade, (self._added,))


def _remade(added: tuple[Gpu, ...]) -> Catalogue:
    return Catalogue().extend(added) if added else Catalogue()


def handle_of(catalogue: Catalogue | None) -> _core.CatalogueHandle | None:
    """That of an argument; None is the built-in one."""
    return None if catalogue is None else instance(catalogue, Catalogue, "catalogue")._handle


_built_in = functools.cache(Catalogue)


def gpus() -> Catalogue:
    """The built-in GPU types."""
    return _built_in()
