# SPDX-License-Identifier: Apache-2.0
"""The law of rates between measured core counts, what it states of its error, and which counts are measured; on laws in closed form."""

import itertools
import random

import pytest

law = pytest.importorskip("horus.profile.law")
runs = pytest.importorskip("horus.profile.runs")

CONCAVE = {"ceiling": lambda c: min(30 * c, 140), "amdahl": lambda c: c / (0.02 * c + 0.1), "root": lambda c: 50 * c**0.6,
           "flat": lambda c: 70, "linear": lambda c: 11 * c, "kinks": lambda c: min(40 * c, 60 + 15 * c, 180)}


def measured(rate, counts, error=0.0):
    return [law.Measured(count, rate(count), error) for count in counts]


@pytest.mark.parametrize("name", CONCAVE)
def test_a_concave_rate_is_within_its_bounds_whatever_was_measured(name):
    rate = CONCAVE[name]
    for counts in itertools.combinations(range(1, 11), 3):
        found = law.Law(measured(rate, counts))
        for cores in range(1, counts[-1] + 1):
            one = found.at(cores)
            assert one.low - 1e-9 <= rate(cores) <= one.high + 1e-9, (counts, cores)
            assert one.low <= one.rate <= one.high and one.measured == (cores in counts)
            assert abs(rate(cores) / one.rate - 1) <= one.error + 1e-9


def test_a_serial_and_a_divided_part_are_found_exactly():
    found = law.Law(measured(CONCAVE["amdahl"], (1, 16)))
    assert [found.at(c).rate for c in range(1, 17)] == pytest.approx([CONCAVE["amdahl"](c) for c in range(1, 17)])


def test_below_the_first_count_the_rate_is_proportional():
    assert law.Law(measured(CONCAVE["linear"], (2, 4))).at(0.5).rate == pytest.approx(5.5)


def test_errors_of_measured_counts_count_twice():
    found = law.Law(measured(CONCAVE["linear"], (1, 3), error=0.01))
    assert found.at(3).error == pytest.approx(0.02) and found.at(2).error == pytest.approx(0.02)


def test_a_core_that_gave_more_than_the_one_before_widens_the_bounds():
    found = law.Law([law.Measured(1, 10), law.Measured(4, 80), law.Measured(5, 80)]).at(3)
    assert found.low == pytest.approx(30) and found.high == pytest.approx(80) and found.rate < 80


def test_more_cores_count_as_no_slower():
    found = law.Law([law.Measured(1, 10), law.Measured(2, 20, 0.01), law.Measured(4, 18)])
    assert found.at(4).rate == 20 and found.at(3).rate == 20 and found.at(4).error == pytest.approx(0.02)


@pytest.mark.parametrize("cores", [0, -1, 5])
def test_nothing_is_said_of_counts_beyond_the_measured_ones(cores):
    with pytest.raises(ValueError, match=f"above 0 to 4, found {cores}"):
        law.Law(measured(CONCAVE["linear"], (1, 4))).at(cores)


def explored(rate, counts, max_runs=5, tolerance=0.03):
    order, left = [], []

    def measure(count, may_come):
        order.append(count)
        left.append(may_come)
        return law.Measured(count, rate(count))

    found = law.explore(measure, counts, max_runs, tolerance)
    assert [one.cores for one in found] == sorted(order) and len({*order}) == len(order) <= max_runs
    assert left == [min(max_runs, len(counts)) - i for i in range(len(order))]
    return order


@pytest.mark.parametrize("name", CONCAVE)
def test_the_ends_are_measured_first_and_no_more_than_allowed(name):
    for size, most in itertools.product((1, 2, 3, 8, 64), (2, 3, 5)):
        order = explored(CONCAVE[name], range(1, size + 1), most)
        assert order[:2] == [size, 1][:size]


def test_what_follows_is_where_the_law_is_least_sure():
    order = explored(CONCAVE["ceiling"], range(1, 25))
    assert order[2] in (4, 5)  # 30 c meets 140 there: between chord and ceiling the way is longest


def test_measuring_ends_within_the_tolerance_after_one_count_between():
    assert len(explored(CONCAVE["linear"], range(1, 33))) == len(explored(CONCAVE["flat"], range(1, 33))) == law.LEAST_RUNS
    assert len(explored(CONCAVE["root"], range(1, 33), tolerance=1e-6)) == 5


def test_five_counts_of_64_suffice_for_three_percent_of_usual_laws():
    for name, rate in CONCAVE.items():
        counts = range(1, 65)
        found = law.Law(measured(rate, explored(rate, counts)))
        mean = sum(abs(found.at(c).rate / rate(c) - 1) for c in counts) / len(counts)
        assert mean <= 0.03, name


def test_blocks_give_the_rate_and_its_standard_error():
    draw, blocks = random.Random(1), runs._Blocks()
    times = [draw.uniform(0.01, 0.03) for _ in range(20_000)]
    for seconds in times:
        blocks.add(seconds)
    rate, error = blocks.rate()
    assert 32 <= len(blocks.closed) < 64 and blocks.batches == sum(count for count, _ in blocks.closed)
    assert rate == pytest.approx(50, rel=0.02)
    alone = (0.02 / 12**0.5) / 0.02 / 20_000**0.5  # of a mean of uniform times, relative
    assert 0.5 < error / alone < 2


def test_bursts_of_workers_are_no_scatter():
    blocks = runs._Blocks()
    for turn in range(4_000):  # four batches at once, then a wait: in a block they are even
        blocks.add(0.04 if turn % 4 == 0 else 0.0)
    rate, error = blocks.rate()
    assert rate == pytest.approx(100, rel=0.01) and error < 0.01


def test_one_block_states_no_error_below_its_rate():
    blocks = runs._Blocks()
    assert blocks.add(0.2) and blocks.rate() == (5.0, 1.0)
