# SPDX-License-Identifier: Apache-2.0
"""Pages that are made: `pages.py write FOLDER` makes one a room of the reference, `pages.py check HTML` fails where a public name is in
none, `pages.py examples FOLDER` makes one a notebook, and the table of bench/results.

Which names there are is asked of the package itself, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import base64
import html
import importlib
import inspect
import json
import pathlib
import re
import sys

import horus
import jsonschema
from sphinx.util.inventory import InventoryFile

TITLES = {"graph": "Graph", "predict": "Predict", "interference": "Interference", "speeds": "Speeds", "cluster": "Cluster",
          "place": "Place", "queue": "Queue", "trace": "Trace", "sim": "Sim", "comparison": "Comparison",
          "metrics": "Metrics", "catalogue": "GPU types", "errors": "Errors"}
ROOM_OF_CORE = {"PlacerOptions": "place"}  # of the compiled module by itself; flags of demands are of predict
ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = """# Benchmark results

Runs of `scripts/bench`, by whoever made them. Add yours: run a benchmark, or your own policy, model or trace
([measure](measure.md#your-own-beside-ours)), with `--by 'your name'`, put its JSON into `bench/results` under a name of its own and
open a pull request. `bench/results/schema.json` says what it holds; the build of this page checks it."""
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


def notebook(path: pathlib.Path, folder: pathlib.Path) -> str:
    """The page of a notebook as it is stored: text, code, what it said and drew."""
    parts = [f"*`examples/notebooks/{path.name}`, as it ran last.*"]
    for at, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(re.sub(r"\((\w+)\.ipynb\)", r"(\1.md)", source))
            continue
        parts.append(f"```python\n{source}\n```")
        for out in cell["outputs"]:
            data = out.get("data", {})
            if "image/png" in data:
                (folder / f"{path.stem}-{at}.png").write_bytes(base64.b64decode(data["image/png"]))
                parts.append(f"![What this cell draws]({path.stem}-{at}.png)")
            else:
                parts.append("```text\n" + "".join(out.get("text") or data["text/plain"]).rstrip() + "\n```")
    parts[0], parts[1] = parts[1], parts[0]  # the title first
    return "\n\n".join(parts) + "\n"


def results(folder: pathlib.Path) -> str:
    """A table a file of bench/results, metric by metric; a bar is the share of the metric's largest value."""
    schema, parts = json.loads((folder / "schema.json").read_text("utf-8")), [RESULTS]
    for path in sorted(set(folder.glob("*.json")) - {folder / "schema.json"}):
        found = json.loads(path.read_text("utf-8"))
        jsonschema.validate(found, schema)
        by_kind: dict[str, list[dict]] = {}
        for row in found["rows"]:
            by_kind.setdefault(row["metric"].split()[-1], []).append(row)
        parts.append(f"## {path.stem}\n\nBy {html.escape(found['by'])}: `{found['command']}`\n\n{html.escape(found.get('note', ''))}")
        table = ["| metric | value | | better | beside it |", "|---|---|---|---|---|"]
        for row in (row for rows in by_kind.values() for row in rows):
            most = max(abs(other["value"]) for other in by_kind[row["metric"].split()[-1]]) or 1
            value = f"{row['value']:,.0f}" if abs(row["value"]) >= 1000 else f"{row['value']:.4g}"
            bar = f'<span class="bar" style="width:{100 * abs(row["value"]) / most:.0f}%"></span>'
            cells = [html.escape(text).replace("|", "\\|") for text in (row["metric"], f"{value}\u00a0{row['unit']}", row["better"], row["baseline"])]
            table.append(f"| {' | '.join([*cells[:2], bar, *cells[2:]])} |")
        told, machine = "; ".join(dict.fromkeys(row["protocol"] for row in found["rows"])), found["machine"]
        parts += ["\n".join(table), html.escape(f"{told}. {machine['processor']}, {machine['cores']} cores, {found['revision']}, {found['time_utc'][:10]}.")]
    return "\n\n".join(parts) + "\n"


def examples(folder: pathlib.Path) -> None:
    (folder / "notebooks").mkdir()
    for path in sorted((ROOT / "examples/notebooks").glob("*.ipynb")):
        (folder / "notebooks" / f"{path.stem}.md").write_text(notebook(path, folder / "notebooks"), "utf-8")
    (folder / "benchmarks.md").write_text(results(ROOT / "bench/results"), "utf-8")


if __name__ == "__main__":
    action, where = sys.argv[1], pathlib.Path(sys.argv[2])
    if action == "write":
        write(where)
    elif action == "examples":
        examples(where)
    else:
        missing = check(where)
        print(f"reference: {len(public())} public names, {len(missing)} missing{': ' if missing else ''}{', '.join(missing)}")
        sys.exit(1 if missing else 0)
