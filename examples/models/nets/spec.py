# SPDX-License-Identifier: Apache-2.0
"""What the driver must know of one net: how to build it, its inputs, and what was published about it."""
import dataclasses
from typing import Callable, Dict, List, Optional, Sequence, Tuple

DEFAULT_OPSET = 17


@dataclasses.dataclass(frozen=True)
class Input:
    """One graph input. `dims` holds ints, or (axis name, default size) for a symbolic axis."""

    name: str
    dims: Sequence
    kind: str = "float"  # float, or int
    high: int = 2  # ints are drawn from [0, high)

    def sizes(self) -> List[int]:
        return [d if isinstance(d, int) else d[1] for d in self.dims]

    def symbols(self) -> Dict[int, str]:
        return {i: d[0] for i, d in enumerate(self.dims) if not isinstance(d, int)}


@dataclasses.dataclass(frozen=True)
class Net:
    """One net of the zoo. A published figure without a source stays None."""

    name: str
    family: str
    build: Callable
    inputs: Tuple[Input, ...]
    outputs: Tuple[str, ...] = ("output",)
    source: str = ""
    published_parameters: Optional[int] = None
    rounding: int = 1  # the published count is rounded or cut to a multiple of this
    published_gflops: Optional[float] = None  # forward pass, 1e9
    multiply_add: Optional[int] = None  # a multiply-add counts 1 or 2 in published_gflops
    opset: int = DEFAULT_OPSET
    symbolic: bool = False  # never allocate the weights (large nets) or fold them (tied weights)
    merged: bool = False  # a deep net: equal shape arithmetic is kept once, it is traced on small inputs
    output_axes: Optional[dict] = None  # symbolic axes of outputs; default: axis 0 is batch
    note: str = ""


def image(size: int, channels: int = 3, name: str = "image") -> Tuple[Input, ...]:
    """A square picture with a symbolic batch axis."""
    return (Input(name, (("batch", 1), channels, size, size)),)
