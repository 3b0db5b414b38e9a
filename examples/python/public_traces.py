# SPDX-License-Identifier: Apache-2.0
"""Public traces that `horus traces` does not read, as the plain CSV that it reads: public_traces.py FILE > plain.csv

Helios       cluster_log.csv (SC 2021)                    Acme    trace_seren.csv, trace_kalos.csv (NSDI 2024)
Philly       cluster_job_log (ATC 2019)                   Alibaba disaggregated_DLRM_trace.csv (v2025), job_info_df.csv (v2026-spot-gpu)

Written against the pages that document them; needs nothing but Python. Jobs without a GPU or a start are left out and counted.
"""

import csv
import datetime
import json
import sys

COLUMNS = ("submit_s", "duration_s", "endless", "tasks", "gpus_per_task", "gpu_milli", "cpu_milli", "mem_mib", "profile", "owner", "kind")


def seconds(text):
    """Of a number, or of a date; None where nothing is told."""
    if not text or text in ("None", "NaN", "nan"):
        return None
    try:
        return float(text)
    except ValueError:
        when = datetime.datetime.fromisoformat(text)
        return (when if when.tzinfo else when.replace(tzinfo=datetime.timezone.utc)).timestamp()


def split(gpus, nodes):
    """Tasks and GPUs of each: nodes alike, or n tasks of one GPU."""
    return (nodes, gpus // nodes) if nodes > 0 and gpus % nodes == 0 else (gpus, 1)


def slurm(row):
    """Helios and Acme: `duration` of Kalos counts from the submission, so it is not read."""
    tasks, each = split(int(float(row["gpu_num"])), int(float(row["node_num"] or 0)))
    began, ended = seconds(row["start_time"]), seconds(row["end_time"])
    return {"submit": seconds(row["submit_time"]), "began": began, "ended": ended, "tasks": tasks, "gpus_per_task": each,
            "cpu_milli": int(1000 * float(row["cpu_num"] or 0) / max(tasks, 1)), "owner": row["user"], "profile": row.get("type", ""),
            "mem_mib": int(1024 * float(row.get("mem_per_pod_GB") or 0))}


def philly(job):
    """A job ran as long as all its attempts together; one whose last attempt has no end still ran."""
    attempts = [(seconds(one["start_time"]), seconds(one["end_time"]), one["detail"]) for one in job["attempts"]]
    ran = sum(end - start for start, end, _ in attempts if start is not None and end is not None)
    nodes = [len(server["gpus"]) for server in attempts[-1][2]] if attempts else []
    tasks, each = (len(nodes), nodes[0]) if len(set(nodes)) == 1 else (sum(nodes), 1)
    began = attempts[0][0] if attempts else None
    goes_on = bool(attempts) and attempts[-1][1] is None
    return {"submit": seconds(job["submitted_time"]), "began": began, "ended": None if goes_on or began is None else began + ran, "tasks": tasks,
            "gpus_per_task": each, "owner": job["user"]}


def dlrm(row):
    came = seconds(row["creation_time"]) or 0  # those that were there before the trace began have none
    began = seconds(row["scheduled_time"])
    return {"submit": came, "began": came if began is None else began, "ended": seconds(row["deletion_time"]), "tasks": 1,
            "gpus_per_task": int(float(row["gpu_request"] or 0)), "cpu_milli": int(1000 * float(row["cpu_request"])),
            "mem_mib": int(1024 * float(row["memory_request"])), "profile": row["app_name"], "kind": "inference"}


def spot(row):
    """`cpu_request` and `gpu_request` are taken to be of each instance; a share of a GPU is a hard request."""
    gpus, came = float(row["gpu_request"]), seconds(row["submit_time"])
    return {"submit": came, "began": came, "ended": came + float(row["duration"]), "tasks": int(row["worker_num"]), "gpus_per_task": int(gpus) or int(gpus > 0),
            "gpu_milli": int(1000 * gpus) if gpus < 1 else 0, "cpu_milli": int(1000 * float(row["cpu_request"])), "owner": row["organization"],
            "kind": "best-effort" if row["job_type"].lower().startswith("spot") else "training"}


FORMATS = {("gpu_num", "node_num", "submit_time", "start_time"): slurm, ("app_name", "gpu_request", "creation_time"): dlrm,
           ("worker_num", "gpu_request", "submit_time", "job_type"): spot}


def jobs_of(path):
    with open(path, newline="", encoding="utf-8-sig") as file:
        if file.read(1) == "[":
            file.seek(0)
            return map(philly, json.load(file))
        file.seek(0)
        rows = csv.DictReader(file)
        read = next((read for needs, read in FORMATS.items() if set(needs) <= set(rows.fieldnames or ())), None)
        if read is None:
            raise SystemExit(f"{path}: line 1: expected the columns of Helios, Acme or Alibaba, or Philly's JSON, found {', '.join(rows.fieldnames or ['nothing'])}")
        return [read(row) for row in rows]


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    jobs = list(jobs_of(sys.argv[1]))
    kept = [job for job in jobs if job["began"] is not None and job["tasks"] * job["gpus_per_task"] > 0]
    first = min((job["submit"] for job in kept), default=0)
    writer = csv.DictWriter(sys.stdout, COLUMNS, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for job in sorted(kept, key=lambda job: job["submit"]):
        ran = {"endless": 1} if job["ended"] is None else {"duration_s": f"{max(job['ended'] - job['began'], 1):.0f}"}  # whole seconds: 0 is less than one
        writer.writerow({**job, **ran, "submit_s": f"{job['submit'] - first:.0f}"})
    print(f"{len(kept)} of {len(jobs)} jobs; the others have no GPU or never started", file=sys.stderr)


if __name__ == "__main__":
    main()
