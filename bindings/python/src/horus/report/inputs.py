# SPDX-License-Identifier: Apache-2.0
"""Reads result files. Each is known by its content; what is missing in one is an error that names it."""

from __future__ import annotations

import ast
import csv
import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import Any

from . import ReportError

READ_AT_ONCE = 1 << 20  # bytes
SCHEMAS = ("horus-potential", "horus-compare", "horus-simulate")
VERSION = 1  # of all three
ALL_TYPES = "all types"  # of a cluster of which only the number of GPUs is known


@dataclass
class Source:
    """One file that the report was made of."""

    path: str
    kind: str
    sha256: str
    command: str = "not recorded in the file"
    version: str = "not recorded"
    revision: str = "not recorded"


@dataclass
class Comparison:
    path: str
    name: str
    results: dict[str, Any]
    machine: dict[str, Any]
    gpus: dict[str, int]  # by type; empty: not known
    runs: str  # folder of runs


@dataclass
class Inputs:
    potentials: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    timelines: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # path, horus simulate --json
    profile_of: dict[str, str] = field(default_factory=dict)  # job id
    type_of: dict[str, str] = field(default_factory=dict)  # node
    gpus_of: dict[str, int] = field(default_factory=dict)  # node
    pairs: dict[str, dict[tuple[str, str], float]] = field(default_factory=dict)  # GPU: (victim, other): slowdown
    sources: list[Source] = field(default_factory=list)


def read(paths: list[str], gpus: dict[str, int]) -> Inputs:
    """All files of the report. gpus: total of the cluster by folder, where the files do not say."""
    if not paths:
        raise ReportError("report: expected at least one file or folder of results, found none")
    inputs = Inputs()
    gpus = {os.path.normpath(folder): count for folder, count in gpus.items()}
    for path in map(os.path.normpath, paths):
        if os.path.isdir(path):
            _read_comparison(path, gpus, inputs)
        elif not os.path.exists(path):
            raise ReportError(f"{path}: expected a file or folder of results, found none")
        elif _starts_with_brace(path):
            _read_json(path, gpus, inputs)
        else:
            _read_csv(path, inputs)
    unused = set(gpus) - {comparison.path for comparison in inputs.comparisons}
    if unused:
        raise ReportError(f"--gpus: expected folders that are among the results, found {', '.join(sorted(unused))}")
    if not (inputs.potentials or inputs.comparisons or inputs.timelines):
        raise ReportError(f"{paths[0]}: expected results of horus potential, compare or simulate, "
                          "found tables that go with such alone")
    return inputs


def need(document: Any, key: str, path: str) -> Any:
    if not isinstance(document, dict):
        raise ReportError(f"{path}: expected an object with {key!r}, found {type(document).__name__}")
    if key not in document:
        raise ReportError(f"{path}: expected {key!r}, found {', '.join(map(str, document))[:200] or 'nothing'}")
    return document[key]


def load(path: str, what: str) -> Any:
    """A JSON document."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise ReportError(f"{path}: expected {what}, found: {error.strerror}") from None
    except ValueError as error:
        raise ReportError(f"{path}: expected {what} as JSON, found: {error}") from None


def _starts_with_brace(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(READ_AT_ONCE).lstrip()[:1] == b"{"


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(READ_AT_ONCE):
            digest.update(block)
    return digest.hexdigest()


def _source(inputs: Inputs, path: str, kind: str, *records: Any) -> None:
    source = Source(path, kind, _digest(path))
    for record in records:
        source.command = str(record.get("command", source.command))
        source.version = str(record.get("horus", source.version))
        source.revision = str(record.get("revision", source.revision))
    inputs.sources.append(source)


def _schema(document: Any, path: str) -> str:
    schema = str(need(document, "schema", path))
    if schema not in SCHEMAS:
        raise ReportError(f"{path}: schema: expected one of {', '.join(SCHEMAS)}, found {schema[:80]!r}")
    version = need(document, "version", path)
    if version != VERSION:
        raise ReportError(f"{path}: version: expected {VERSION}, found {version!r}")
    return schema


def _read_comparison(folder: str, gpus: dict[str, int], inputs: Inputs) -> None:
    path = os.path.join(folder, "results.json")
    results = load(path, "the results of horus compare")
    if _schema(results, path) != "horus-compare":
        raise ReportError(f"{path}: schema: expected horus-compare, found {results['schema']}")
    for key in ("baseline", "seeds", "metrics", "summary", "runs"):
        need(results, key, path)
        if key != "baseline" and (not isinstance(results[key], list) or not results[key]):
            raise ReportError(f"{path}: {key}: expected a list with at least one, found {str(results[key])[:80]}")
    machine_path = os.path.join(folder, "machine.json")
    machine = load(machine_path, "version and command of horus compare")
    for key in ("horus", "command"):
        need(machine, key, machine_path)
    sizes = {name: int(count) for name, count in gpus_stated(results, path).items()}
    if folder in gpus:
        sizes = sizes if sum(sizes.values()) == gpus[folder] else {ALL_TYPES: gpus[folder]}
    name = os.path.basename(os.path.normpath(folder))
    inputs.comparisons.append(Comparison(folder, name, results, machine, sizes, os.path.join(folder, "runs")))
    _source(inputs, path, "policies compared", machine)


def gpus_stated(document: dict[str, Any], path: str) -> dict[str, float]:
    """GPUs of the cluster by type; empty where the file is from before it told them."""
    cluster = document.get("cluster", {})
    gpus = cluster.get("gpus", {}) if isinstance(cluster, dict) else None
    if not isinstance(gpus, dict) or not all(isinstance(count, (int, float)) for count in gpus.values()):
        raise ReportError(f"{path}: cluster: expected gpus by type, found {str(cluster)[:80]}")
    return {str(name): float(count) for name, count in gpus.items()}


def nodes_stated(document: dict[str, Any], path: str) -> dict[str, dict[str, int]]:
    """GPUs of each node by type; empty where the file is from before it told them."""
    found = {}
    for node in document.get("cluster", {}).get("nodes", []):
        found[str(need(node, "name", path))] = {str(name): int(count) for name, count in need(node, "gpus", path).items()}
    return found


def _read_json(path: str, gpus: dict[str, int], inputs: Inputs) -> None:
    document = load(path, "results")
    if isinstance(document, dict) and "schema" not in document and _is_speeds(document):
        _add_speeds(document, path, inputs)
        _source(inputs, path, "table of pairs")
        return
    schema = _schema(document, path)
    if schema == "horus-potential":
        for key in ("source", "profiles", "reference", "least_gain_pct", "cases"):
            need(document, key, path)
        if not isinstance(document["cases"], list) or not document["cases"]:
            raise ReportError(f"{path}: cases: expected a list with at least one, found {str(document['cases'])[:80]}")
        gpus_stated(document, path)
        inputs.potentials.append((path, document))
        _source(inputs, path, "what sharing could give", document)
    elif schema == "horus-compare":
        _read_comparison(os.path.dirname(path) or ".", gpus, inputs)
    elif not any(os.path.splitext(path)[0] == os.path.splitext(csv_path)[0] for csv_path, _ in inputs.timelines):
        timeline = os.path.splitext(path)[0] + ".csv"
        if not os.path.exists(timeline):
            raise ReportError(f"{timeline}: expected the timeline of {path} (horus simulate --timeline), found none")
        _read_csv(timeline, inputs)


def _is_speeds(document: dict[str, Any]) -> bool:
    return bool(document) and all(isinstance(types, dict) and any(str(key).startswith("('") for key in types)
                                  for types in document.values())


def _add_speeds(document: dict[str, Any], path: str, inputs: Inputs) -> None:
    """Gavel's layout: GPU: profile: "null" alone, other: [its speed, the other's]. Jobs on one GPU count."""
    for gpu, profiles in document.items():
        table = inputs.pairs.setdefault(str(gpu), {})
        for key, speeds in profiles.items():
            try:
                name, count = ast.literal_eval(key)
                alone = float(speeds["null"])
                for other_key, both in speeds.items():
                    other, other_count = ast.literal_eval(other_key) if other_key != "null" else ("", 0)
                    if count == other_count == 1 and alone > 0 and float(both[0]) > 0:
                        table[str(name), str(other)] = alone / float(both[0])
            except (ValueError, TypeError, KeyError, IndexError, SyntaxError) as error:
                raise ReportError(f"{path}: {gpu}: {str(key)[:80]}: expected speeds alone (\"null\") and in pairs, "
                                  f"found: {error!r}") from None


def _read_csv(path: str, inputs: Inputs) -> None:
    with open(path, newline="", encoding="utf-8") as file:
        try:
            header = next(csv.reader(file), [])
        except (csv.Error, UnicodeDecodeError) as error:
            raise ReportError(f"{path}: line 1: expected a header, found: {error}") from None
    if {"time_us", "event"} <= set(header):
        _add_timeline(path, inputs)
    elif {"victim", "other", "slowdown"} <= set(header):
        for line, row in _rows(path):
            value = _number(row["slowdown"], path, line, "slowdown")
            inputs.pairs.setdefault(row.get("gpu", ""), {})[row["victim"], row["other"]] = value
        _source(inputs, path, "table of pairs")
    elif {"gpu", "job_a", "job_b"} <= set(header):
        for line, row in _rows(path):
            table = inputs.pairs.setdefault(row["gpu"], {})
            for victim, other, column in (("job_a", "job_b", "slowdown_a"), ("job_b", "job_a", "slowdown_b")):
                if row.get(column):
                    table[row[victim], row[other]] = _number(row[column], path, line, column)
        _source(inputs, path, "table of pairs")
    elif {"node", "gpu_type"} <= set(header):
        for line, row in _rows(path):
            inputs.type_of[row["node"]] = row["gpu_type"]
            if row.get("gpus"):
                inputs.gpus_of[row["node"]] = int(_number(row["gpus"], path, line, "gpus"))
        _source(inputs, path, "GPU types of nodes")
    elif "profile" in header:
        for line, row in _rows(path):
            inputs.profile_of[row.get("id") or str(line - 2)] = row["profile"]
        _source(inputs, path, "trace")
    else:
        raise ReportError(f"{path}: line 1: expected a timeline (time_us, event, ...), a table of pairs (victim, other, "
                          "slowdown; or gpu, job_a, job_b), nodes (node, gpu_type) or a trace (profile), found "
                          f"{repr(', '.join(header)[:200]) if header else 'nothing'}")


def _add_timeline(path: str, inputs: Inputs) -> None:
    beside = os.path.splitext(path)[0] + ".json"
    if any(known == path for known, _ in inputs.timelines):
        return
    run = load(beside, f"what horus simulate --json says of {path}")
    if _schema(run, beside) != "horus-simulate":
        raise ReportError(f"{beside}: schema: expected horus-simulate, found {run['schema']}")
    for key in ("workload", "policy", "seed", "metrics"):
        need(run, key, beside)
    gpus_stated(run, beside)
    inputs.timelines.append((path, run))
    _source(inputs, path, "timeline of a run", run)


def _rows(path: str) -> Any:
    """Line numbers and rows by column."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        try:
            for row in reader:
                if None in row or None in row.values():
                    raise ReportError(f"{path}: line {reader.line_num}: expected {len(reader.fieldnames or [])} fields, "
                                      "found another number")
                yield reader.line_num, row
        except (csv.Error, UnicodeDecodeError) as error:
            raise ReportError(f"{path}: after line {reader.line_num}: expected CSV in UTF-8, found: {error}") from None


def _number(text: str, path: str, line: int, column: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ReportError(f"{path}: line {line}: {column}: expected a number, found {text[:80]!r}") from None
