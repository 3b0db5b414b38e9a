# SPDX-License-Identifier: Apache-2.0
"""What can go wrong: one exception a kind of status, all below `Error`.

A refusal (a job that does not fit) is no error: it is a decision. Every error carries `status`, the number of the C ABI,
and `status_name`, its constant without the prefix.
"""

from __future__ import annotations

import re

__all__ = ["Busy", "CallbackError", "Cancelled", "Conflict", "CorruptError", "Error", "Exists", "FileError", "InternalError",
           "InvalidArgument", "LimitError", "NoMemory", "NotFound", "StateError", "Unsupported", "from_status"]


class Error(Exception):
    """Base of every error of libhorus."""

    status: int = 17
    status_name: str = "INTERNAL"

    def __init__(self, message: str = "", status: int | None = None, status_name: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if status is not None:
            self.status = status
        if status_name is not None:
            self.status_name = status_name

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.message, self.status, self.status_name))


class InvalidArgument(Error, ValueError):
    """An argument is wrong; the message names it, what was expected and what was found."""

    status, status_name = 1, "INVALID_ARGUMENT"


class NotFound(Error, LookupError):
    """No such id, name or index."""

    status, status_name = 4, "NOT_FOUND"


class StateError(Error):
    """Not possible in the present state."""

    status, status_name = 13, "STATE"


class Exists(StateError):
    """The id is in use; of apply: the job is placed already."""

    status, status_name = 5, "EXISTS"


class Conflict(StateError):
    """A node changed since the plan saw it: plan again."""

    status, status_name = 6, "CONFLICT"


class Busy(StateError):
    """The object is in use by the call that called back, or by another thread."""

    status, status_name = 7, "BUSY"


class CallbackError(Error):
    """A callable answered with a value out of its range. What it raises comes back as itself."""

    status, status_name = 8, "CALLBACK"


class Cancelled(Error):
    """A progress callback returned False."""

    status, status_name = 9, "CANCELLED"


class LimitError(Error, ValueError):
    """A documented limit was exceeded; the message names it."""

    status, status_name = 10, "LIMIT"


class CorruptError(Error, ValueError):
    """Bytes are damaged, not of the format expected, or of a version that this library does not read."""

    status, status_name = 11, "CORRUPT"


class Unsupported(Error, NotImplementedError):
    """Not part of this build, or not possible for this kind of object."""

    status, status_name = 14, "UNSUPPORTED"


class FileError(Error, OSError):
    """A file cannot be opened, read or written."""

    status, status_name = 15, "IO"


class NoMemory(Error, MemoryError):
    """An allocation failed."""

    status, status_name = 16, "NO_MEMORY"


class InternalError(Error):
    """A bug of libhorus."""

    status, status_name = 17, "INTERNAL"


_CLASSES: dict[int, tuple[type[Error], str]] = {
    1: (InvalidArgument, "INVALID_ARGUMENT"), 2: (InvalidArgument, "INVALID_STRUCT"),
    3: (InternalError, "BUFFER_TOO_SMALL"), 4: (NotFound, "NOT_FOUND"), 5: (Exists, "EXISTS"),
    6: (Conflict, "CONFLICT"), 7: (Busy, "BUSY"), 8: (CallbackError, "CALLBACK"), 9: (Cancelled, "CANCELLED"),
    10: (LimitError, "LIMIT"), 11: (CorruptError, "CORRUPT"), 12: (CorruptError, "VERSION"), 13: (StateError, "STATE"),
    14: (Unsupported, "UNSUPPORTED"), 15: (FileError, "IO"), 16: (NoMemory, "NO_MEMORY"), 17: (InternalError, "INTERNAL"),
}


# What messages of the library call by its name in C or on the command line.
_SPOKEN = tuple((re.compile(pattern), spoken) for pattern, spoken in (
    (r"the run's dims \(--dim NAME=SIZE, dim_names in C\)", "RunSpec(dims={'NAME': SIZE})"),
    (r"\bhorus_run_spec: ", "RunSpec."),
    (r"\bhorus_(demand|slowdown)_observation: ", ""),
    (r"\bhorus_observations_snapshot\b", "Observations.to_bytes"),
    (r"\bHORUS_DEMAND_\*", "horus.DemandFlag"),
    (r"\bHORUS_OBSERVED_\*", "gpu_util_pct, mem_bw_util_pct, mem_mib and step_time_us"),
))


def from_status(status: int, message: str) -> Error:
    """The exception that belongs to a status of the C ABI, in words of Python."""
    kind, name = _CLASSES.get(status, (InternalError, "UNKNOWN"))
    for pattern, spoken in _SPOKEN:
        message = pattern.sub(spoken, message)
    return kind(message, status, name)
