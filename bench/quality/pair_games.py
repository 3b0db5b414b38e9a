# SPDX-License-Identifier: Apache-2.0
"""What better slowdowns are worth: choosing a newcomer's partner, and matching jobs into pairs.

A pair is worth the summed normalised throughput of its two jobs, 1 / slowdown + 1 / slowdown. A game compares the choice
that predictions make with a random one (0 %) and with the best one (100 %), summed over its draws.
"""
import random

CANDIDATES = 8  # residents that a newcomer chooses among
DRAWS = 40  # a newcomer
MATCHED = 12  # jobs of a matching
MATCHINGS = 100  # draws a campaign


def worth(table, a, b):
    return 1 / table[a, b] + 1 / table[b, a]


def both_ways(table, a, b):
    return (a, b) in table and (b, a) in table


class Gap:
    """Sums of what was gained over a random choice, and of what could be."""

    def __init__(self):
        self.gained = self.possible = 0.0
        self.draws = 0

    def add(self, chosen, at_random, best):
        self.gained += chosen - at_random
        self.possible += best - at_random
        self.draws += 1

    def closed_pct(self):
        return 100 * self.gained / self.possible if self.possible > 0 else None


def choose_partners(gap, campaign, measured, predicted_for, draws=DRAWS):
    """Every job of the campaign as a newcomer. `predicted_for(job)`: (victim, other) -> slowdown, by a model that has not
    seen what the protocol hides from it. The draws depend on the campaign and the job, never on the model."""
    jobs = sorted({job for pair in measured for job in pair})
    for newcomer in jobs:
        predicted = predicted_for(newcomer)
        residents = [job for job in jobs if job != newcomer and both_ways(measured, newcomer, job)
                     and both_ways(predicted, newcomer, job)]
        if len(residents) < CANDIDATES:
            continue
        draw = random.Random(f"{campaign}: {newcomer}")
        for _ in range(draws):
            drawn = draw.sample(residents, CANDIDATES)
            values = [worth(measured, newcomer, job) for job in drawn]
            expected = [worth(predicted, newcomer, job) for job in drawn]
            chosen = [value for value, e in zip(values, expected) if e == max(expected)]  # equal ones share the choice
            gap.add(sum(chosen) / len(chosen), sum(values) / len(values), max(values))


def matchings(count, value):
    """Over all perfect matchings of `count` jobs whose pairs have a value: the best as pairs, and the mean worth."""
    best, ways, total = {0: (0.0, None)}, {0: 1}, {0: 0.0}
    for chosen in range(1, 1 << count):
        first = (chosen & -chosen).bit_length() - 1
        for second in range(first + 1, count):
            rest = chosen ^ (1 << first) ^ (1 << second)
            if not chosen >> second & 1 or rest not in best or (first, second) not in value:
                continue
            worth_of = value[first, second]
            if chosen not in best or best[rest][0] + worth_of > best[chosen][0]:
                best[chosen] = best[rest][0] + worth_of, (first, second)
            ways[chosen] = ways.get(chosen, 0) + ways[rest]
            total[chosen] = total.get(chosen, 0.0) + total[rest] + ways[rest] * worth_of
    everybody = (1 << count) - 1
    if everybody not in best:
        return None
    pairs, left = [], everybody
    while left:
        pairs.append(best[left][1])
        left ^= (1 << pairs[-1][0]) ^ (1 << pairs[-1][1])
    return pairs, total[everybody] / ways[everybody]


def match_jobs(gaps, campaign, measured, predicted, draws=MATCHINGS):
    """Jobs of the campaign drawn at random and matched into pairs that were measured; draws without such a matching are
    left out. `gaps` and `predicted` by model: all see the same draws."""
    jobs = sorted({job for pair in measured for job in pair})
    if len(jobs) < MATCHED:
        return
    draw = random.Random(f"matching: {campaign}")
    for _ in range(draws):
        drawn = draw.sample(jobs, MATCHED)
        pairs = [(a, b) for a in range(MATCHED) for b in range(a + 1, MATCHED)
                 if all(both_ways(table, drawn[a], drawn[b]) for table in (measured, *predicted.values()))]
        truth = {(a, b): worth(measured, drawn[a], drawn[b]) for a, b in pairs}
        best = matchings(MATCHED, truth)
        if best is None:
            continue
        for model, table in predicted.items():
            chosen, _ = matchings(MATCHED, {(a, b): worth(table, drawn[a], drawn[b]) for a, b in pairs})
            gaps[model].add(sum(truth[pair] for pair in chosen), best[1], sum(truth[pair] for pair in best[0]))
