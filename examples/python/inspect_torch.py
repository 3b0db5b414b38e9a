# SPDX-License-Identifier: Apache-2.0
"""A decoder of 70 billion parameters, inspected without its weights: torch's meta device holds shapes alone.

Needs torch 2.5 or later with onnxscript.
"""

import argparse
import resource
import time

import torch
from torch import nn

import horus


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Attention(nn.Module):
    """Grouped queries: eight heads share a key and a value."""

    def __init__(self, width, head=128, group=8):
        super().__init__()
        self.head, self.group = head, group
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, width // group, bias=False) for _ in range(2))

    def forward(self, x):
        batch, words, width = x.shape
        q = self.q(x).view(batch, words, -1, self.head).transpose(1, 2)
        k, v = (part.view(batch, words, -1, 1, self.head).expand(-1, -1, -1, self.group, -1)
                .reshape(batch, words, -1, self.head).transpose(1, 2) for part in (self.k(x), self.v(x)))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(mixed.transpose(1, 2).reshape(batch, words, width))


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        inner = width * 7 // 2
        self.before, self.attention, self.after = Norm(width), Attention(width), Norm(width)
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        x = x + self.attention(self.before(x))
        y = self.after(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self, layers, width, words=32_000):
        super().__init__()
        self.embed, self.head = nn.Embedding(words, width), nn.Linear(width, words, bias=False)
        self.layers, self.norm = nn.ModuleList(Layer(width) for _ in range(layers)), Norm(width)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layers", nargs="?", type=int, default=80)
    parser.add_argument("width", nargs="?", type=int, default=8192)
    asked = parser.parse_args()

    began = time.monotonic()
    with torch.device("meta"):
        module, tokens = Decoder(asked.layers, asked.width), torch.zeros(1, 4096, dtype=torch.long)
    graph = horus.Graph.from_torch(module, tokens)
    run = horus.RunSpec(mode="inference", precision="bf16")
    cost = graph.cost(run)
    print(graph)
    print(f"  parameters  {cost.parameters / 1e9:8.2f} x 10^9")
    print(f"  a prompt    {cost.forward_flops / 1e12:8.1f} TFLOP, memory {cost.peak_bytes / 2**30:.1f} GiB")
    print(f"  features    {len(graph.features(run).values):8d} columns")
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  took        {time.monotonic() - began:8.0f} s, at most {mib:,.0f} MiB, torch included")


if __name__ == "__main__":
    main()
