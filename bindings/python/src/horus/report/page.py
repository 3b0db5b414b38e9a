# SPDX-License-Identifier: Apache-2.0
"""Puts the page together: tables by the template, sums for the charts as JSON, scripts inline under a policy that lets
nothing else run and nothing be fetched."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
from collections.abc import Callable
from importlib import metadata, resources
from typing import Any, TypeVar

import jinja2

from . import ReportError, answers, clusters, figures
from .inputs import ALL_TYPES, Comparison, Inputs, gpus_stated, need, read
from .jobs import BINS_A_DECADE, read_runs
from .parts import bounds_of, matrices, policies_of, sizes_of

Made = TypeVar("Made")
VERSIONS_OF = ("libhorus", "jinja2", "plotly", "numpy")


def render(paths: list[str], *, policy: str | None, gpus: dict[str, int], plotly_js: Any, command: str) -> str:
    """The page of these results, as text."""
    inputs = read(paths, gpus)
    clusters.check(inputs)
    runs = read_runs(inputs)
    chosen = _policy(inputs, policy)
    comparisons = [_laid_out(one.path, policies_of, one) for one in inputs.comparisons]
    page: dict[str, Any] = {
        "potentials": [_laid_out(path, bounds_of, path, document, inputs.pairs)
                       for path, document in inputs.potentials],
        "comparisons": comparisons, "largest": max((one["gpus"] for one in comparisons), default=0),
        "sizes": _laid_out(", ".join(one.path for one in inputs.comparisons), sizes_of, inputs.comparisons),
        "runs": runs, "policy": chosen,
        "matrices": matrices(inputs.pairs), "sources": inputs.sources, "command": command, "versions": _versions(),
        "cluster": _cluster(inputs), "choices": _choices(inputs, runs),
    }
    data = {"comparisons": [{key: one[key] for key in ("name", "baseline", "metrics", "values", "gpus", "shown", "titles")}
                            for one in comparisons],
            "potentials": [_gains(one) for one in page["potentials"]], "largest": page["largest"],
            "runs": runs, "sizes": page["sizes"]["lines"], "bins_a_decade": BINS_A_DECADE}
    plotly, script = _plotly(plotly_js), _resource("report.js")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
                                     lstrip_blocks=True)
    environment.filters.update(number=figures.number, signed=figures.signed, span=figures.span, bound=figures.bound,
                               seconds=figures.seconds, gain=answers.gain_text)
    environment.globals["of_metric"] = figures.of_metric
    return environment.from_string(_resource("report.html.j2")).render(
        page, style=_resource("report.css"), data=_for_script(data), plotly=plotly, script=script,
        script_hashes=" ".join(f"'sha256-{_hash(text)}'" for text in (plotly, script)))


def _gains(potential: dict[str, Any]) -> list[list[Any]]:
    """What the first chart shows: of each GPU type the bounds, gains and whether these pay."""
    return [[case["gpu"] or "", case["name"], [figures.bound(row["slowdown_bound"]) for row in case["bounds"]],
             [row["gain_pct"] for row in case["bounds"]], [row["pays"] for row in case["bounds"]]]
            for case in potential["cases"]]


def _laid_out(path: str, make: Callable[..., Made], *arguments: Any) -> Made:
    """What `make` makes of the file; values of other kinds than the documented ones are an error that names it."""
    try:
        return make(*arguments)
    except ReportError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        raise ReportError(f"{path}: expected the layout that docs/reference/json.md describes, found: {error!r}") from error


def _for_script(data: Any) -> str:
    """JSON that no HTML parser takes for an end of the element, whatever names jobs have."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # ASCII
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _plotly(path: Any) -> str:
    if path is None:
        text = resources.files("plotly").joinpath("package_data/plotly.min.js").read_text("utf-8")
    else:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if "plotly.js" not in text[:400]:
            raise ReportError(f"{os.fspath(path)}: expected a bundle of plotly.js, found {text[:80]!r}")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("</script", "<\\/script")


def _policy(inputs: Inputs, wanted: str | None) -> str | None:
    """Whose figures come first."""
    if not inputs.comparisons:
        return None
    first = inputs.comparisons[0]
    names = list(dict.fromkeys(row["policy"] for row in first.results["summary"]))
    if wanted is not None:
        if wanted not in names:
            raise ReportError(f"--policy: expected one of {', '.join(names)[:300]}, found {wanted!r}")
        return wanted
    others = [name for name in names if name != first.results["baseline"]]
    return "horus" if "horus" in names else (others or names or [None])[0]


def _cluster(inputs: Inputs) -> str:
    """The cluster in words, by what the files say."""
    gpus: dict[str, float] = {}
    if inputs.potentials:
        path, document = inputs.potentials[0]
        gpus = {str(case["gpu"]): need(case, "gpus", path) for case in document["cases"] if case["gpu"] is not None}
    if inputs.comparisons:
        largest = max(inputs.comparisons, key=_size)
        if _size(largest) not in (0, sum(gpus.values())):
            gpus = dict(largest.gpus)
    for path, told in inputs.timelines:
        gpus = gpus or gpus_stated(told, path)
    if not gpus:
        return ""
    types = ", ".join(f"{figures.number(count, 6)} {name}" for name, count in gpus.items() if name != ALL_TYPES)
    return f"{figures.number(sum(gpus.values()), 6)} GPUs" + (f": {types}" if types else "")


def _size(comparison: Comparison) -> int:
    return sum(comparison.gpus.values())


def _choices(inputs: Inputs, runs: list[dict[str, Any]]) -> dict[str, list[str]]:
    """What the filters offer."""
    summaries = [row for comparison in inputs.comparisons for row in comparison.results["summary"]]
    cases = [case for _, document in inputs.potentials for case in document["cases"]]
    profiles = [name for _, document in inputs.potentials for name in document["profiles"]]
    return {
        "workload": _workloads([row["workload"] for row in summaries], [run["workload"] for run in runs]),
        "policy": _unique([row["policy"] for row in summaries] + [run["policy"] for run in runs]),
        "gpu": _unique([str(case["gpu"]) for case in cases if case["gpu"] is not None]
                      + [name for run in runs for name in run["gpu_types"]]),
        "job": sorted(set(profiles) | {name for run in runs for name in run["profiles"]}),
        "metric": _unique([metric["name"] for comparison in inputs.comparisons
                          for metric in comparison.results["metrics"]]),
    }


def _workloads(compared: list[str], played: list[str]) -> list[str]:
    """First those that both comparisons and timelines are of, so that the page opens with all of it."""
    names = _unique(compared + played)
    return sorted(names, key=lambda name: not (name in compared and name in played))


def _unique(names: list[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _versions() -> list[str]:
    found = [f"Python {platform.python_version()}"]
    for name in VERSIONS_OF:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name}: not installed as a package")
    return found
