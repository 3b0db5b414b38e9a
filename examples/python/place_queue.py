# SPDX-License-Identifier: Apache-2.0
"""Where a morning's queue should go: a cluster and jobs from files, a plan, the plan onto the cluster, and why.

Usage: place_queue.py [CLUSTER.yaml JOBS.yaml]     docs/files.md describes both; otherwise those of examples/
"""

import pathlib
import sys

import horus


def main():
    examples = pathlib.Path(__file__).resolve().parents[1]
    paths = sys.argv[1:3] if len(sys.argv) > 2 else [examples / "cluster.yaml", examples / "jobs.yaml"]
    cluster = horus.Cluster.from_yaml(paths[0])
    jobs = horus.read_jobs(paths[1], cluster)  # graphs become demands
    print(cluster)

    placer = horus.Placer("horus")
    plan = placer.place(cluster, jobs)
    names = {job.id: job.name for job in jobs}
    for decision in plan:  # a refusal is a decision like any other
        print(f"{names[decision.job]:16} {decision.verdict:7} {decision.text}")
    cluster.apply(plan)
    print(cluster)

    first = jobs[0]
    with cluster.what_if() as copy:  # would a second one of the first fit, and where would it go without it?
        again = first.replace(id=2**32, name="again")
        print("another:", placer.place(copy, again)[0].text)
        if first.id in copy.jobs:
            copy.release(first.id)
        print("instead:", placer.place(copy, again)[0].text)
    print(placer.explain(cluster, again))


if __name__ == "__main__":
    main()
