# SPDX-License-Identifier: Apache-2.0
"""Arguments: checks that name the argument, what was expected and what was found; ids as columns; progress."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, Union

import numpy as np
import numpy.typing as npt

from .errors import InvalidArgument

T = TypeVar("T")
Progress = Union[Callable[[float], object], bool, None]
"""Of a long call: a function of the share done (return False to stop it), True for a bar (tqdm), or None."""


_SAID = {"float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32", "bfloat16": "bf16", "autocast": "amp",
         "mixed": "amp", "train": "training", "torch": "pytorch", "keras": "tensorflow", "channelslast": "nhwc",
         "timesliced": "time-slice"}


def near(found: str, known: Iterable[str]) -> str:
    """"; did you mean 'fp16'?" of the word nearest to what was found; empty where none is near."""
    def folded(word: str) -> str:
        return word.lower().removeprefix("torch.").translate(str.maketrans("", "", "-_ ."))

    words = {folded(word): word for word in known}
    meant = words.get(folded(found)) or words.get(folded(_SAID.get(folded(found), "")))
    if meant is None:
        meant = words.get(next(iter(difflib.get_close_matches(folded(found), words, 1)), ""))
    return "" if meant is None else f"; did you mean {meant!r}?"


def instance(value: object, kind: type[T], what: str) -> T:
    """The value itself, of the kind expected."""
    if not isinstance(value, kind):
        raise TypeError(f"{what}: expected {kind.__name__}, found {value!r:.80} ({type(value).__name__})")
    return value


def sequence(values: Iterable[T], kind: type[T], what: str) -> tuple[T, ...]:
    """Values of that kind as a tuple, which nobody changes while the library reads it."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{what}: expected a sequence of {kind.__name__}, found {values!r:.80} ({type(values).__name__})")
    found = tuple(values)
    for position, value in enumerate(found):
        if not isinstance(value, kind):
            raise TypeError(
                f"{what}[{position}]: expected {kind.__name__}, found {value!r:.80} ({type(value).__name__})")
    return found


def integer(value: Any, what: str, least: int = 0, most: int = 2**64 - 1) -> int:
    """An integer of Python or numpy in the range."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise TypeError(f"{what}: expected int, found {value!r:.80} ({type(value).__name__})")
    number = int(value.__index__())
    if not least <= number <= most:
        raise InvalidArgument(f"{what}: expected an integer from {least} to {most}, found {number}")
    return number


def real(value: Any, what: str) -> float:
    """A number."""
    if isinstance(value, (bool, str, bytes)) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(f"{what}: expected float, found {value!r:.80} ({type(value).__name__})")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as wrong:
        raise InvalidArgument(f"{what}: expected a number, found {value!r:.80}") from wrong


def text(value: object, what: str) -> str:
    """Text that the C ABI can take."""
    found = instance(value, str, what)
    if "\0" in found:
        raise InvalidArgument(f"{what}: expected text without NUL, found {found!r:.80}")
    try:
        found.encode()
    except UnicodeEncodeError as wrong:
        raise InvalidArgument(f"{what}: expected text that UTF-8 can write, found {found!r:.80}") from wrong
    return found


def column(values: Any, dtype: npt.DTypeLike, what: str, rows: int | None = None) -> npt.NDArray[Any]:
    """A contiguous column of the dtype: the same memory where it fits, else a safe conversion."""
    wanted = np.dtype(dtype)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as wrong:
        raise InvalidArgument(f"{what}: expected a column of {wanted}, found {type(values).__name__}") from wrong
    if array.ndim != 1:
        raise InvalidArgument(f"{what}: expected 1 dimension, found {array.ndim} (shape {array.shape})")
    if rows is not None and array.shape[0] != rows:
        raise InvalidArgument(f"{what}: expected {rows} rows, found {array.shape[0]}")
    if array.dtype == wanted:
        return np.ascontiguousarray(array)
    if array.size == 0:
        return np.zeros(0, wanted)
    return _converted(array, wanted, what)


def _converted(array: npt.NDArray[Any], wanted: np.dtype[Any], what: str) -> npt.NDArray[Any]:
    same_kind = array.dtype.kind in ("iu" if wanted.kind in "iu" else "iuf" if wanted.kind == "f" else wanted.kind)
    if not same_kind:
        if wanted.kind in "iu" and array.dtype.kind == "f":
            for row in np.flatnonzero(~np.isfinite(array))[:1]:
                raise InvalidArgument(f"{what}[{row}]: expected an integer, found {array[row]:g}")
            raise InvalidArgument(f"{what}: expected dtype {wanted}, found {array.dtype}; round it: "
                                  f"numpy.rint({what}).astype({wanted.name!r})")
        raise InvalidArgument(f"{what}: expected dtype {wanted}, found {array.dtype}")
    if wanted.kind in "iu":
        limits = np.iinfo(wanted)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise InvalidArgument(f"{what}: expected values from {limits.min} to {limits.max}, "
                                  f"found {int(array.min())} to {int(array.max())}")
    return np.ascontiguousarray(array, dtype=wanted)


def ids(values: Any, what: str) -> npt.NDArray[np.uint64] | None:
    """A column of ids, or None for all."""
    return None if values is None else column(values, np.uint64, what)


@contextmanager
def progress_of(progress: Progress, label: str) -> Iterator[Callable[[float], object] | None]:
    """The callback for the C ABI: the caller's own, a tqdm bar for True, or none."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        try:
            tqdm = importlib.import_module("tqdm.auto").tqdm
        except ImportError:
            yield None
            return
        with tqdm(total=1.0, desc=label, bar_format="{l_bar}{bar}| {elapsed}<{remaining}") as bar:
            yield lambda done: bar.update(done - bar.n) and None
            bar.update(1.0 - bar.n)
    elif callable(progress):
        yield progress
    else:
        raise TypeError(f"progress: expected a function of the share done, True or None, found {progress!r:.80}")
