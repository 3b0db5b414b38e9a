# SPDX-License-Identifier: Apache-2.0
"""Writes public tables of measured pairs as the pairs and jobs of docs/measure.md, with graphs of examples/models.

Usage: pairs.py --data DIR --out DIR

Every *.csv under --data whose header has source, gpu, job_a, job_b, slowdown_a and slowdown_b becomes OUT/<name>_pairs.csv
and OUT/<name>_jobs.csv. A job without a graph in the zoo is left out with its pairs and named on stderr. How a job is run
is assumed as for Gavel's step times (datasets.py). Each kind of job is a family of its own, as the table names them
(ResNet-18 on small images and ResNet-50 are two). The GPUs were shared by time slicing; rows of a GPU that datasets.py
does not know are left out and named too.
"""
import csv
import os
import sys

import datasets

LAYOUT = {"source", "gpu", "job_a", "job_b", "slowdown_a", "slowdown_b"}
PAIR_COLUMNS = ("gpu", "sharing_mode", "job_a", "job_b", "slowdown_a", "slowdown_b", "campaign", "note")
JOB_COLUMNS = ("job", "graph", "family", "batch", "dims", "mode", "precision", "optimizer", "framework", "note")


def job_row(job, families, out):
    """The job's row, or None without a public graph."""
    name, batch = datasets.job_of(job)
    net, dims, optimizer = datasets.GAVEL.get(name, ("", "", ""))
    if net not in families:
        return None
    graph = os.path.relpath(datasets.MODELS / "graphs" / f"{net}.onnx", out)
    return {"job": job, "graph": graph, "family": name, "batch": batch, "dims": dims, "mode": "training",
            "precision": "fp32", "optimizer": optimizer, "framework": "pytorch-1", "note": net}


def write(path, columns, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def convert(path, families, out, _exported=None):
    """Paths of the pairs and of the jobs, or None for another layout."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        if not LAYOUT <= set(reader.fieldnames or []):
            return None
        rows = list(reader)
    jobs = {job: job_row(job, families, out) for row in rows for job in (row["job_a"], row["job_b"])}
    missing, pairs = {}, []
    for row in rows:
        gpu = datasets.gpu_in(row["gpu"])
        unknown = [job for job in (row["job_a"], row["job_b"]) if jobs[job] is None]
        unknown += [row["gpu"]] if gpu.startswith("opaque:") else []
        for name in unknown:
            missing[name] = missing.get(name, 0) + 1
        if not unknown and (row["slowdown_a"] or row["slowdown_b"]):
            pairs.append({"gpu": gpu, "sharing_mode": "time-slice", "job_a": row["job_a"],
                          "job_b": row["job_b"], "slowdown_a": row["slowdown_a"], "slowdown_b": row["slowdown_b"],
                          "campaign": row["source"]})
    for name, count in sorted(missing.items()):
        print(f"{path.stem}: no graph or GPU type for {name}: {count} pairs left out", file=sys.stderr)
    if not pairs:
        return None
    written = out / f"{path.stem}_pairs.csv", out / f"{path.stem}_jobs.csv"
    write(written[0], PAIR_COLUMNS, pairs)
    write(written[1], JOB_COLUMNS, [row for row in jobs.values() if row])
    return written


def convert_all(data, out):
    """Pairs and jobs of every table of pairs under `data`."""
    return datasets.convert_all(data, out, convert_one=convert)


if __name__ == "__main__":
    sys.exit(datasets.main(__doc__, lambda data, out: [path for written in convert_all(data, out) for path in written]))
