# SPDX-License-Identifier: Apache-2.0
"""Queues alone: who goes first."""

import numpy as np
import pytest


def queued(horus, number, **fields):
    return horus.QueuedJob(id=number, submit_us=number, **fields)


def drained(queue, now_us=1_000):
    return [queue.pop(now_us) for _ in range(len(queue))]


def test_first_come_first_served_but_for_priority(horus):
    queue = horus.Queue()
    for number in (3, 1, 2):
        queue.push(queued(horus, number, priority=int(number == 2)))
    assert len(queue) == 3 and queue.window(10, 2).tolist() == [2, 1] and queue.window(10, 2).dtype == np.uint64
    assert drained(queue) == [2, 1, 3] and queue.pop(10) is None and len(queue) == 0


def test_the_shortest_goes_first_and_updates_move_it(horus):
    queue = horus.Queue("srtf")
    for number, total in ((1, 300), (2, 200), (3, 100)):
        queue.push(queued(horus, number, total_us=total))
    queue.update(1, remaining_us=10, attained_gpu_us=5)
    assert queue.job(1).remaining_us == 10 and queue.job(1).attained_gpu_us == 5
    queue.remove(3)
    queue.serve(2, 100)
    assert drained(queue) == [1]


def test_options_reach_the_discipline(horus):
    fair = horus.Queue("drf", gpu_milli=8_000, cpu_milli=64_000)
    for number in (1, 2):
        fair.push(queued(horus, number, owner=number, gpus=1))
    fair.set_owner_usage(1, 4_000)
    assert fair.pop(10) == 2
    fair.set_capacity(16_000, 64_000)
    las = horus.Queue("las", las_thresholds_gpu_us=[10, 20], patience_us=500)
    for number, attained in ((1, 15), (2, 5), (3, 25)):
        las.push(queued(horus, number, attained_gpu_us=attained))
    assert las.window(4, 3).tolist() == [2, 1, 3] and las.window(502, 1).tolist() == [1]
    assert horus.Queue("horus-plus").look_ahead == 5


@pytest.mark.parametrize("call, words", [
    (lambda h, q: h.Queue("nonsense"), ("nonsense", "fifo")), (lambda h, q: h.Queue("drf"), ("capacity", "drf")),
    (lambda h, q: h.Queue(nonsense=1), ("nonsense", "patience_us")), (lambda h, q: q.push(3), ("job", "QueuedJob", "3")),
    (lambda h, q: q.push(h.QueuedJob(id=1)), ("1",)), (lambda h, q: q.remove(9), ("9",)),
    (lambda h, q: q.serve(9, 1), ("9",)), (lambda h, q: q.window("x", 1), ("now_us", "int", "'x'")),
    (lambda h, q: q.push(h.QueuedJob(id=5, gpu_milli=2_000)), ("gpu_milli", "2000")),
    (lambda h, q: q.update(1, remaining_us=-5), ("remaining_us", "-5")),
])
def test_what_is_wrong_is_named_and_nothing_changes(horus, call, words):
    queue = horus.Queue()
    queue.push(queued(horus, 1))
    with pytest.raises((horus.Error, TypeError)) as caught:
        call(horus, queue)
    for word in words:
        assert word in str(caught.value)
    assert drained(queue) == [1]
