# SPDX-License-Identifier: Apache-2.0
"""Llama-like decoders: rotary positions, RMSNorm, SwiGLU, grouped-query attention, optional experts."""
import torch
from torch import nn

from nets.attention import attend, future, merge_heads, split_heads
from nets.spec import Input, Net

ROTARY_BASE = 10000.0  # Su et al. 2021


class RmsNorm(nn.Module):
    """Zhang and Sennrich 2019: scale by the root mean square, no centring."""

    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return self.scale * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


def rotary_tables(length, width):
    """Cosines and sines of every position, computed in the graph: [length, width] each."""
    rates = ROTARY_BASE ** (-torch.arange(0, width, 2).float() / width)
    angles = torch.arange(length).float().unsqueeze(-1) * rates
    angles = torch.cat([angles, angles], -1)
    return angles.cos(), angles.sin()


def rotate(x, cosine, sine):
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * cosine + turned * sine


class GroupedAttention(nn.Module):
    """Fewer key and value heads than query heads; each serves a group of queries."""

    def __init__(self, width, heads, shared):
        super().__init__()
        self.heads, self.shared = heads, shared
        head = width // heads
        self.query = nn.Linear(width, heads * head, bias=False)
        self.key = nn.Linear(width, shared * head, bias=False)
        self.value = nn.Linear(width, shared * head, bias=False)
        self.output = nn.Linear(heads * head, width, bias=False)

    def repeat(self, x):
        """[batch, shared, seq, width] -> [batch, heads, seq, width]"""
        batch, _, length, width = x.shape
        group = self.heads // self.shared
        return x.unsqueeze(2).expand(batch, self.shared, group, length, width).reshape(
            batch, self.heads, length, width)

    def forward(self, x, rotary, hidden):
        query = rotate(split_heads(self.query(x), self.heads), *rotary)
        key = rotate(split_heads(self.key(x), self.shared), *rotary)
        value = split_heads(self.value(x), self.shared)
        return self.output(merge_heads(attend(query, self.repeat(key), self.repeat(value), hidden)))


class SwiGlu(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self, width, heads, shared, feed):
        super().__init__()
        self.attention_norm = RmsNorm(width)
        self.attention = GroupedAttention(width, heads, shared)
        self.feed_norm = RmsNorm(width)
        self.feed = feed

    def forward(self, x, rotary, hidden):
        x = x + self.attention(self.attention_norm(x), rotary, hidden)
        return x + self.feed(self.feed_norm(x))


class Llama(nn.Module):
    """`feed` makes the feed-forward part of each layer."""

    def __init__(self, words, layers, width, heads, shared, feed):
        super().__init__()
        self.head_width = width // heads
        self.words = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(width, heads, shared, feed()) for _ in range(layers))
        self.norm = RmsNorm(width)
        self.output = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.words(tokens)
        rotary, hidden = rotary_tables(length, self.head_width), future(length)
        for layer in self.layers:
            x = layer(x, rotary, hidden)
        return self.output(self.norm(x))


class Experts(nn.Module):
    """Expert-choice routing (Zhou et al. 2022): each expert takes its best `capacity` tokens of every sequence."""

    def __init__(self, width, inner, experts, capacity):
        super().__init__()
        self.width, self.taken, self.capacity = width, experts * capacity, capacity
        self.router = nn.Linear(width, experts, bias=False)
        self.gate = nn.Parameter(torch.empty(experts, width, inner))
        self.up = nn.Parameter(torch.empty(experts, width, inner))
        self.down = nn.Parameter(torch.empty(experts, inner, width))

    def forward(self, x):
        weight, chosen = self.router(x).softmax(-1).transpose(1, 2).topk(self.capacity, -1)
        places = chosen.reshape(-1, self.taken, 1).expand(-1, -1, self.width)
        taken = x.gather(1, places).view(-1, self.taken // self.capacity, self.capacity, self.width)
        made = (nn.functional.silu(taken @ self.gate) * (taken @ self.up)) @ self.down
        made = (made * weight.unsqueeze(-1)).view(-1, self.taken, self.width)
        return torch.zeros_like(x).scatter_add(1, places, made)


class DenseExperts(nn.Module):
    """Every expert sees every token and the top two count (Mixtral's rule, computed densely)."""

    def __init__(self, width, inner, experts):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(SwiGlu(width, inner) for _ in range(experts))

    def forward(self, x):
        weight, chosen = self.router(x).topk(2, -1)
        weight = weight.softmax(-1)
        total = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            share = (weight * (chosen == index).to(weight.dtype)).sum(-1, keepdim=True)
            total = total + share * expert(x)
        return total


def decoder(name, family, build, length, words, note="", source="", published=None, rounding=1, dynamic=True):
    axis = ("seq", length) if dynamic else length
    return Net(name, family, build, (Input("tokens", (("batch", 1), axis), "int", words),), ("logits",),
               source, published, rounding, symbolic=True, note=note,
               output_axes={"logits": {0: "batch", 1: "seq"} if dynamic else {0: "batch"}})


def nets():
    def tiny_llama():
        return Llama(32000, 22, 2048, 32, 4, lambda: SwiGlu(2048, 5632))

    def choice():
        return Llama(32000, 4, 512, 8, 2, lambda: Experts(512, 1408, 8, 32))

    def mixture():
        return Llama(32000, 4, 512, 8, 2, lambda: DenseExperts(512, 1408, 8))

    return [
        decoder("tinyllama_1b1", "llama", tiny_llama, 128, 32000,
                source="model card of TinyLlama-1.1B; Zhang et al. 2024", published=1100048384),
        decoder("moe_expert_choice", "mixture of experts", choice, 128, 32000, dynamic=False,
                note="8 experts, each takes 32 of 128 tokens: two experts a token on average"),
        decoder("moe_top2_dense", "mixture of experts", mixture, 128, 32000,
                note="every expert computes every token; the router masks the sum"),
    ]
