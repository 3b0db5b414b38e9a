# SPDX-License-Identifier: Apache-2.0
"""Times of steps: by the device's own events where it works behind the host's back, else by the host's clock."""
import collections
import time

# Steps queued ahead of the one that runs: keeps the device busy without an endless queue.
STEPS_AHEAD = 2
BEGUN_BEFORE = STEPS_AHEAD + 1  # steps that may have begun before a window that opens now


class DeviceClock:
    """Times between events of the device; at most STEPS_AHEAD steps are queued."""

    def __init__(self, cuda):
        self.cuda, self.marks = cuda, collections.deque()

    def mark(self):
        """Call it after each step. The milliseconds of the oldest unread step, or none yet."""
        event = self.cuda.Event(enable_timing=True)
        event.record()
        self.marks.append(event)
        if len(self.marks) <= STEPS_AHEAD + 1:
            return None
        before = self.marks.popleft()
        self.marks[0].synchronize()
        return before.elapsed_time(self.marks[0])


class HostClock:
    """The same for devices that compute at once."""

    def __init__(self):
        self.last = None

    def mark(self):
        now = time.perf_counter()
        before, self.last = self.last, now
        return None if before is None else (now - before) * 1e3


def clock_of(torch, device):
    return DeviceClock(torch.cuda) if device.type == "cuda" else HostClock()
