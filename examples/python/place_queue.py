# SPDX-License-Identifier: Apache-2.0
"""Where a morning's queue should go: a cluster and jobs from files (docs/files.md), a plan, the plan onto the cluster, and why."""

import argparse
import pathlib

import horus


def main():
    examples = pathlib.Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cluster", nargs="?", default=examples / "cluster.yaml")
    parser.add_argument("jobs", nargs="?", default=examples / "jobs.yaml")
    asked = parser.parse_args()

    cluster = horus.Cluster.from_yaml(asked.cluster)
    jobs = horus.read_jobs(asked.jobs, cluster)  # graphs become demands
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
