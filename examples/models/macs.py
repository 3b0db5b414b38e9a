# SPDX-License-Identifier: Apache-2.0
"""Counts the multiply-adds of a forward pass while torch runs it: an oracle that never sees the ONNX graph."""
import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
PRODUCTS = {aten.mm: (0, 1), aten.bmm: (0, 1), aten.addmm: (1, 2), aten.baddbmm: (1, 2)}
CELLS = ("lstm", "gru", "rnn")


def product(left, right):
    """Multiply-adds of left @ right: rows x columns x inner, for each matrix of a batch."""
    return left.numel() * right.shape[-1]


def convolution(args, out):
    """Each weight of a group meets every output position (every input position when transposed)."""
    source, weight, transposed = args[0], args[1], args[6]
    positions = source if transposed else out
    return positions.numel() * math.prod(weight.shape[1:])


class Counter(TorchDispatchMode):
    """Sums multiply-adds of convolutions and matrix products; recurrent cells must arrive decomposed."""

    def __init__(self):
        super().__init__()
        self.macs = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        packet = func.overloadpacket
        if packet in PRODUCTS:
            left, right = PRODUCTS[packet]
            self.macs += product(args[left], args[right])
        elif packet in (aten.convolution, aten._convolution):
            self.macs += convolution(args, out)
        elif packet in (aten.mv, aten.dot, aten.addmv):
            self.macs += args[-2].numel()
        elif any(cell in str(packet) for cell in CELLS) or "attention" in str(packet):
            raise RuntimeError(f"{packet} reached the counter whole: it has no counting rule")
        return out


def forward_macs(model, inputs):
    with torch.no_grad(), Counter() as counter:
        model(*inputs)
    return counter.macs
