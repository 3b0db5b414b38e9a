# SPDX-License-Identifier: Apache-2.0
"""Pages of the reference: `pages.py write FOLDER` makes one a room, `pages.py check HTML` fails where a public name is in none.

Which names there are is asked of the package itself, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import importlib
import inspect
import pathlib
import sys

import horus
from sphinx.util.inventory import InventoryFile

TITLES = {"graph": "Graph", "predict": "Predict", "interference": "Interference", "speeds": "Speeds", "cluster": "Cluster",
          "place": "Place", "queue": "Queue", "trace": "Trace", "sim": "Sim", "comparison": "Comparison",
          "metrics": "Metrics", "catalogue": "GPU types", "errors": "Errors"}
ROOM_OF_CORE = {"PlacerOptions": "place"}  # of the compiled module by itself; flags of demands are of predict
PACKAGES = {"plot": "Pictures", "report": "The report", "steps": "Step times", "profile": "Input pipelines"}


def rooms() -> dict[str, list[str]]:
    """Public names by room, as the package itself sorts them."""
    found = {room: list(names) for room, names in horus._ROOMS.items()}
    for name in found.pop("_core"):
        found[ROOM_OF_CORE.get(name, "predict")].append(name)
    return found


def entry(module: str, name: str) -> str:
    thing = getattr(importlib.import_module(module), name)
    if inspect.isclass(thing):
        kind = "autoexception" if issubclass(thing, BaseException) else "autoclass"
        bases = "   :show-inheritance:\n" if kind == "autoexception" else ""
        return f".. {kind}:: {module}.{name}\n   :members:\n   :undoc-members:\n{bases}"
    if callable(thing):
        return f".. autofunction:: {module}.{name}\n"
    return f".. data:: {name}\n   :type: {type(thing).__name__}\n   :value: {thing!r}\n"


def page(title: str, about: str, module: str, names: list[str]) -> str:
    entries = "\n".join(entry(module, name) for name in names)
    return f"{title}\n{'=' * len(title)}\n\n.. currentmodule:: {module}\n\n{about}\n\n{entries}"


def write(folder: pathlib.Path) -> None:
    for room, names in rooms().items():
        about = inspect.getdoc(importlib.import_module(f"horus.{room}")) or ""
        (folder / f"{room}.rst").write_text(page(TITLES.get(room, room.capitalize()), about, "horus", names), "utf-8")
    for package, title in PACKAGES.items():
        module = importlib.import_module(f"horus.{package}")
        (folder / f"{package}.rst").write_text(page(title, inspect.getdoc(module) or "", f"horus.{package}", list(module.__all__)), "utf-8")


def public() -> list[str]:
    names = [f"horus.{name}" for name in horus.__all__]
    return names + [f"horus.{package}.{name}" for package in PACKAGES for name in importlib.import_module(f"horus.{package}").__all__]


def check(html: pathlib.Path) -> list[str]:
    """Public names that the built reference does not have."""
    with open(html / "objects.inv", "rb") as file:
        inventory = InventoryFile.load(file, "", lambda _, path: path)
    there = {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}
    return [name for name in public() if name not in there]


if __name__ == "__main__":
    action, where = sys.argv[1], pathlib.Path(sys.argv[2])
    if action == "write":
        write(where)
    else:
        missing = check(where)
        print(f"reference: {len(public())} public names, {len(missing)} missing{': ' if missing else ''}{', '.join(missing)}")
        sys.exit(1 if missing else 0)
