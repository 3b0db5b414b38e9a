# SPDX-License-Identifier: Apache-2.0
"""Which runs say most: isolated runs over nets, batches and precisions, groups that cover the plane of demands.

Nothing here is random: the same finished runs and limits give the same plan.
"""
import itertools
import math

import zoo

REPEAT_EVERY = 12  # one isolated run, and one group, of so many is run again for the noise
LARGE, LARGE_CARD_MIB = 4, 48 << 10  # times the largest batch, on cards above this
MEMORY_SHARE = 0.9  # of the GPU's memory that a group may take together
SLOW_STEP_US = 400_000  # slower jobs make a group's window long; they are left to isolated runs
CROWD = 0.15  # what a job's use in earlier groups costs, in units of the plane's side
JOBS_OF_GROUPS, JOBS_OF_LARGEST = {2: 80, 3: 24}, 12  # 3240 pairs, 2600 triples to choose from
SAME_FAMILY = 0.7  # how much a group within one family counts


def middle(batches, place):
    """The batch at a place of four, when a net has fewer."""
    return batches[min(len(batches) - 1, place * len(batches) // 4)]


def levels(runs, large):
    """The runs of a net in levels: each level of all nets comes before the next of any; `large` cards get larger batches.

    A level is a few runs, since they share a process and its start.
    """
    usual, others = runs.dims[0], runs.dims[1:]
    base = lambda batch, dims=usual, **more: (batch, dims, {"precision": "fp32", "optimizer": runs.optimizer, **more})
    second = "adam" if runs.optimizer in ("momentum", "sgd") else "momentum"
    b = [middle(runs.batches, place) for place in range(4)]
    sizes = [base(b[1]), base(b[3]), base(b[0])]
    if runs.batches == zoo.WHOLE:
        sizes, others = [base(b[0], dims) for dims in runs.dims], ()
    return [
        sizes,
        [base(b[1], dims) for dims in others] + [base(b[2], precision="amp-bf16")],
        [base(LARGE * b[3], precision=precision) for precision in ("fp32", "amp-bf16") if large and b[3]],
        [base(b[2], precision="tf32"), base(b[2])],
        [base(b[0], precision="amp-bf16"), base(b[2], mode="inference")],
        [base(b[1], optimizer=second), base(b[3], precision="amp")],
        [base(b[0], mode="inference"), base(b[3], precision="amp-bf16")],
    ]


def job_of(net, runs, batch, dims, more):
    return zoo.Job(net, runs.family, batch, tuple(sorted(dims.items())), **more)


def batches_of(runs, only):
    """Those asked for, of a net that has a batch axis."""
    return runs.batches if runs.batches == zoo.WHOLE else only.get("batches") or runs.batches


def isolated_jobs(chosen, only=None, large=False):
    """Every isolated run worth making, the most telling first. `only` fixes batches, precisions, optimisers or modes."""
    only = only or {}
    found = {}
    if only:
        for net, runs in chosen.items():
            for batch, precision, optimizer, mode in itertools.product(
                    batches_of(runs, only), only.get("precisions") or ("fp32",),
                    only.get("optimizers") or (runs.optimizer,), only.get("modes") or ("training",)):
                found[job_of(net, runs, batch, runs.dims[0],
                             dict(precision=precision, optimizer=optimizer, mode=mode))] = None
        return list(found)
    per_net = {net: levels(runs, large) for net, runs in chosen.items()}
    for level in range(max(map(len, per_net.values()), default=0)):
        for net, runs in chosen.items():
            for batch, dims, more in per_net[net][level]:
                found[job_of(net, runs, batch, dims, more)] = None
    return list(found)


def by_net(jobs):
    """The jobs of a net together, from the smallest: so one process runs them, and none after one that did not fit."""
    order = {}
    for job in jobs:
        order.setdefault(job.net, []).append(job)
    return [(net, sorted(found, key=lambda one: (one.dims, one.batch, one.precision, one.optimizer, one.mode)))
            for net, found in order.items()]


def repeats(finished):
    """Every REPEAT_EVERY-th finished job, for a second run in another process."""
    return finished[REPEAT_EVERY // 2::REPEAT_EVERY]


def plane(run):
    """Where a job lies: utilisation, memory traffic and step time (its decimal logarithm, 10 us to 1 s), each 0 to 1."""
    time = (math.log10(max(run["step_mean_us"], 1.0)) - 1) / 5
    return (run["gpu_util_pct"] or 0) / 100, (run["mem_bw_util_pct"] or 0) / 100, min(max(time, 0.0), 1.0)


def place_of(members):
    """Where a group lies: its members' places, the busiest first, so that order does not matter."""
    return tuple(itertools.chain.from_iterable(sorted(members, reverse=True)))


def distance(a, b):
    return math.dist(a, b)


def groups(runs, size, total_mib, done, count):
    """The next `count` groups of `size` jobs: each as far as possible from all before it, no job too often.

    `runs` are the isolated runs, one a job; `done` the groups already run, as tuples of job names.
    """
    usable = {run["job"]: run for run in runs if run["step_mean_us"] <= SLOW_STEP_US}
    places = {job: plane(run) for job, run in usable.items()}
    names = thin(sorted(usable), places, size)
    candidates = [one for one in itertools.combinations_with_replacement(names, size)
                  if total_mib is None or sum(usable[job]["mem_mib"] or 0 for job in one) <= MEMORY_SHARE * total_mib]
    spots = {one: place_of([places[job] for job in one]) for one in candidates}
    used, taken, near = {}, set(), {one: math.inf for one in candidates}

    def take(group):
        taken.add(tuple(sorted(group)))
        for job in group:
            used[job] = used.get(job, 0) + 1
        if all(job in places for job in group):
            spot = place_of([places[job] for job in group])
            for one in candidates:
                near[one] = min(near[one], distance(spots[one], spot))

    for group in done:
        take(group)
    found = []
    while len(found) < count:
        free = [one for one in candidates if one not in taken]
        if not free:
            break
        mean_use = sum(used.values()) / max(1, len(names))
        best = max(free, key=lambda one: (worth(one, near[one], used, mean_use, usable), one))
        take(best)
        found.append(best)
    return found


def worth(group, near, used, mean_use, usable):
    crowd = sum(used.get(job, 0) - mean_use for job in group) / len(group)
    kin = SAME_FAMILY if len({usable[job]["family"] for job in group}) == 1 else 1.0
    return kin * min(near, 2.0) - CROWD * crowd


def thin(names, places, size):
    """As many jobs as the design can weigh in about a second: those that lie farthest apart."""
    limit = JOBS_OF_GROUPS.get(size, JOBS_OF_LARGEST)
    if len(names) <= limit:
        return names
    kept = [names[0]]
    near = {one: distance(places[one], places[kept[0]]) for one in names[1:]}
    while len(kept) < limit:
        best = max(near, key=lambda one: (near[one], one))
        del near[best]
        kept.append(best)
        near = {one: min(far, distance(places[one], places[best])) for one, far in near.items()}
    return sorted(kept)
