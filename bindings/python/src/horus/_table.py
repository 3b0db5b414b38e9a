# SPDX-License-Identifier: Apache-2.0
"""Tables: columns by name, as pandas frames, text and HTML."""

from __future__ import annotations

import html
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from ._install import install

_ROWS_SHOWN = 20
_CELL_SHOWN = 200  # characters


def frame(columns: Mapping[str, Any]) -> Any:
    """A DataFrame over the columns. Needs pandas (the extra `frames`)."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError as missing:
        raise ImportError(f"to_frame() needs pandas: {install('frames')}") from missing
    return pandas.DataFrame(dict(columns))


def cell(value: object) -> str:
    """A value as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if hasattr(value, "item"):  # numpy scalars
        value = value.item()
    if isinstance(value, float):
        return "" if value != value else f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    text = str(value)
    return text if len(text) <= _CELL_SHOWN else text[:_CELL_SHOWN] + "..."


def to_html(title: str, columns: Mapping[str, Any]) -> str:
    """A table for notebooks; long ones are cut and say so."""
    names = list(columns)
    rows = len(columns[names[0]]) if names else 0
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell(columns[name][i]))}</td>" for name in names) + "</tr>"
        for i in range(min(rows, _ROWS_SHOWN)))
    more = f"<p>{rows - _ROWS_SHOWN:,} more rows</p>" if rows > _ROWS_SHOWN else ""
    return f"<div><p>{html.escape(title)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}</div>"


def pairs_to_html(title: str, values: Mapping[str, Any]) -> str:
    """A table of names and values."""
    return to_html(title, {"": list(values), " ": list(values.values())})
