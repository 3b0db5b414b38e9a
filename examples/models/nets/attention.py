# SPDX-License-Identifier: Apache-2.0
"""Attention and feed-forward blocks that the transformer nets of the zoo share."""
import math

import torch
from torch import nn


def split_heads(x, heads):
    """[batch, seq, heads * width] -> [batch, heads, seq, width]"""
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def merge_heads(x):
    """[batch, heads, seq, width] -> [batch, seq, heads * width]"""
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


def attend(query, key, value, hidden=None):
    """Scaled dot products; `hidden` is true where a query must not look."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if hidden is not None:
        scores = scores.masked_fill(hidden, -1e9)
    return scores.softmax(-1) @ value


def attend_scaled(query, key, value, hidden=None):
    """The same, queries scaled first: what PyTorch 2 runs as one kernel is exported so."""
    scores = (query / math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)
    if hidden is not None:
        scores = scores.masked_fill(hidden, -1e9)
    return scores.softmax(-1) @ value


def future(length, device=None):
    """True above the diagonal, computed from the length so that the graph holds no table."""
    steps = torch.arange(length, device=device)
    return steps.unsqueeze(0) > steps.unsqueeze(1)


def sinusoids(positions, width):
    """Sine and cosine position codes, computed in the graph: [positions, width]."""
    rates = torch.exp(torch.arange(0, width, 2).float() * (-math.log(10000.0) / width))
    angles = positions.float().unsqueeze(-1) * rates
    return torch.cat([angles.sin(), angles.cos()], -1)


class Attention(nn.Module):
    """Multi-head attention with four square projections; `memory` makes it cross attention."""

    def __init__(self, width, heads, bias=True):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=bias)
        self.key = nn.Linear(width, width, bias=bias)
        self.value = nn.Linear(width, width, bias=bias)
        self.output = nn.Linear(width, width, bias=bias)

    def forward(self, x, memory=None, hidden=None):
        memory = x if memory is None else memory
        query = split_heads(self.query(x), self.heads)
        key = split_heads(self.key(memory), self.heads)
        value = split_heads(self.value(memory), self.heads)
        return self.output(merge_heads(attend(query, key, value, hidden)))


class WideAttention(nn.Module):
    """Multi-head attention that is told its batch, so that a deep graph repeats no shape arithmetic.

    `memory` is the width of what cross attention reads; `biases` says which of query, key and value have one.
    """

    def __init__(self, width, heads, memory=None, biases=(True, True, True)):
        super().__init__()
        self.heads, self.width = heads, width
        self.query = nn.Linear(width, width, bias=biases[0])
        self.key = nn.Linear(memory or width, width, bias=biases[1])
        self.value = nn.Linear(memory or width, width, bias=biases[2])
        self.output = nn.Linear(width, width)

    def forward(self, x, batch, memory=None, hidden=None):
        memory = x if memory is None else memory
        split = lambda made: made.view(batch, -1, self.heads, self.width // self.heads).transpose(1, 2)
        made = attend_scaled(*(split(part) for part in (self.query(x), self.key(memory), self.value(memory))), hidden)
        return self.output(made.transpose(1, 2).reshape(batch, -1, self.width))


class FeedForward(nn.Module):
    """Two linear layers around an activation."""

    def __init__(self, width, inner, activation):
        super().__init__()
        self.expand = nn.Linear(width, inner)
        self.activation = activation
        self.shrink = nn.Linear(inner, width)

    def forward(self, x):
        return self.shrink(self.activation(self.expand(x)))
