# SPDX-License-Identifier: Apache-2.0
"""Lines of JSON between the profiler and its workers, and how a worker is tied to the profiler's life.

As a program, `link.py PARENT COMMAND...` becomes the command, which ends with the parent.
"""
import ctypes
import json
import os
import select
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent):
    """The kernel ends this process when the profiler ends, however it ends."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        pass  # not Linux: the end of standard input ends the worker as well
    if os.getppid() != parent:
        os._exit(1)


class Closed(EOFError):
    """The other side is gone."""


class Reader:
    """Whole lines of JSON from a file descriptor, with or without waiting."""

    def __init__(self, descriptor):
        self.descriptor, self.rest, self.lines = descriptor, b"", []

    def fileno(self):
        return self.descriptor

    def fill(self, seconds):
        """Reads what comes within the time; None waits for ever."""
        if select.select([self.descriptor], [], [], seconds)[0]:
            data = os.read(self.descriptor, 1 << 16)
            if not data:
                raise Closed()
            *whole, self.rest = (self.rest + data).split(b"\n")
            self.lines += [json.loads(line) for line in whole if line.strip()]

    def poll(self, seconds=0.0):
        """The next message, or none."""
        if not self.lines:
            self.fill(seconds)
        return self.lines.pop(0) if self.lines else None

    def wait(self):
        while True:
            message = self.poll(None)
            if message is not None:
                return message


def end(process, seconds):
    """Waits for a process to end, then kills it; one that the kernel does not let go (a driver that hangs) is left behind."""
    for kill in (False, True):
        if kill:
            process.kill()
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            pass
    return None


def write(descriptor, message):
    data = (json.dumps(message) + "\n").encode()
    while data:
        data = data[os.write(descriptor, data):]


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
