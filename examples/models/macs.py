# SPDX-License-Identifier: Apache-2.0
"""Counts the multiply-adds of a forward pass while torch runs it: an oracle that never sees the ONNX graph."""
import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
PRODUCTS = {aten.mm: (0, 1), aten.bmm: (0, 1), aten.addmm: (1, 2), aten.baddbmm: (1, 2)}
CONVOLUTIONS = (aten.convolution, aten._convolution)
CELLS = ("lstm", "gru", "rnn")


def product(left, right):
    """Multiply-adds of left @ right: rows x columns x inner, for each matrix of a batch."""
    return left.numel() * right.shape[-1]


def convolution(args, out):
    """Each weight of a group meets every output position (every input position when transposed)."""
    source, weight, transposed = args[0], args[1], args[6]
    positions = source if transposed else out
    return positions.numel() * math.prod(weight.shape[1:])


def hollow_shape(packet, args):
    """The dimensions of what a product or a convolution (not transposed) gives."""
    if packet in PRODUCTS:
        left, right = PRODUCTS[packet]
        return *args[left].shape[:-1], args[right].shape[-1]
    source, weight, stride, padding, dilation = args[0], args[1], args[3], args[4], args[5]
    sizes = ((size + 2 * pad - gap * (kernel - 1) - 1) // step + 1 for size, kernel, step, pad, gap
             in zip(source.shape[2:], weight.shape[2:], stride, padding, dilation))
    return source.shape[0], weight.shape[0], *sizes


class Counter(TorchDispatchMode):
    """Sums multiply-adds of convolutions and matrix products; recurrent cells must arrive decomposed.

    `hollow`: products and convolutions give zeros, so that a large net runs in seconds.
    """

    def __init__(self, hollow=False):
        super().__init__()
        self.macs, self.hollow = 0, hollow

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        packet = func.overloadpacket
        empty = self.hollow and (packet in PRODUCTS or (packet in CONVOLUTIONS and not args[6]))
        out = torch.zeros(hollow_shape(packet, args)) if empty else func(*args, **(kwargs or {}))
        if packet in PRODUCTS:
            left, right = PRODUCTS[packet]
            self.macs += product(args[left], args[right])
        elif packet in CONVOLUTIONS:
            self.macs += convolution(args, out)
        elif packet in (aten.mv, aten.dot, aten.addmv):
            self.macs += args[-2].numel()
        elif any(cell in str(packet) for cell in CELLS) or "attention" in str(packet):
            raise RuntimeError(f"{packet} reached the counter whole: it has no counting rule")
        return out


def forward_macs(model, inputs, hollow=False):
    with torch.no_grad(), Counter(hollow) as counter:
        model(*inputs)
    return counter.macs
