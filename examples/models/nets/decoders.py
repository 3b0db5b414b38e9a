# SPDX-License-Identifier: Apache-2.0
"""Open language models since 2023 at full depth: Llama 3, Mistral, Qwen 2.5 and Mixtral."""
import torch
from torch import nn

from nets.attention import attend_scaled, future
from nets.llama import RmsNorm, SwiGlu
from nets.spec import Input, Net

PUBLISHED = "parameters of the published checkpoint"


def rotary_tables(length, width, base):
    """Cosines and sines of every position, computed in the graph: [length, width] each."""
    rates = base ** (-torch.arange(0, width, 2).float() / width)
    angles = torch.arange(length).float().unsqueeze(-1) * rates
    angles = torch.cat([angles, angles], -1)
    return angles.cos(), angles.sin()


def rotate(x, cosine, sine):
    left, right = x.chunk(2, -1)
    return x * cosine + torch.cat([-right, left], -1) * sine


class SharedAttention(nn.Module):
    """Grouped-query attention (Ainslie et al. 2023) that is told its batch; Qwen's query, key and value have biases."""

    def __init__(self, width, heads, shared, bias):
        super().__init__()
        self.heads, self.shared, self.width, self.head = heads, shared, width, width // heads
        self.query = nn.Linear(width, width, bias=bias)
        self.key = nn.Linear(width, shared * self.head, bias=bias)
        self.value = nn.Linear(width, shared * self.head, bias=bias)
        self.output = nn.Linear(width, width, bias=False)

    def split(self, x, batch, heads):
        return x.view(batch, -1, heads, self.head).transpose(1, 2)

    def repeat(self, x, batch):
        """[batch, shared, seq, head] -> [batch, heads, seq, head]"""
        wide = x.unsqueeze(2).expand(-1, -1, self.heads // self.shared, -1, -1)
        return wide.reshape(batch, self.heads, -1, self.head)

    def forward(self, x, batch, rotary, hidden):
        query = rotate(self.split(self.query(x), batch, self.heads), *rotary)
        key = rotate(self.split(self.key(x), batch, self.shared), *rotary)
        value = self.split(self.value(x), batch, self.shared)
        made = attend_scaled(query, self.repeat(key, batch), self.repeat(value, batch), hidden)
        return self.output(made.transpose(1, 2).reshape(batch, -1, self.width))


class Mixture(nn.Module):
    """Jiang et al. 2024: every token goes to its two best of the experts.

    The choices are sorted by expert and cut into groups of one size, one a expert, as in a balanced batch.
    """

    def __init__(self, width, inner, experts=8, chosen=2):
        super().__init__()
        self.width, self.experts, self.chosen = width, experts, chosen
        self.router = nn.Linear(width, experts, bias=False)
        self.gate = nn.Parameter(torch.empty(experts, width, inner))
        self.up = nn.Parameter(torch.empty(experts, width, inner))
        self.down = nn.Parameter(torch.empty(experts, inner, width))

    def forward(self, x):
        tokens = x.reshape(-1, self.width)
        weight, expert = self.router(tokens).topk(self.chosen, -1)
        order = expert.reshape(-1).sort()[1]
        groups = tokens[torch.div(order, self.chosen, rounding_mode="trunc")].view(self.experts, -1, self.width)
        made = (nn.functional.silu(groups @ self.gate) * (groups @ self.up)) @ self.down
        back = made.view(-1, self.width)[order.sort()[1]].view(-1, self.chosen, self.width)
        return (back * weight.softmax(-1).unsqueeze(-1)).sum(1).view_as(x)


class DecoderLayer(nn.Module):
    def __init__(self, attention, width, feed, eps):
        super().__init__()
        self.attention_norm, self.attention = RmsNorm(width, eps), attention
        self.feed_norm, self.feed = RmsNorm(width, eps), feed

    def forward(self, x, batch, rotary, hidden):
        x = x + self.attention(self.attention_norm(x), batch, rotary, hidden)
        return x + self.feed(self.feed_norm(x))


class Decoder(nn.Module):
    """`feed` makes the feed-forward part of each layer; a tied output layer is the transposed word table."""

    def __init__(self, words, layers, width, heads, shared, feed, base, bias=False, tied=False, eps=1e-5):
        super().__init__()
        self.head, self.base = width // heads, base
        self.words = nn.Embedding(words, width)
        self.layers = nn.ModuleList(
            DecoderLayer(SharedAttention(width, heads, shared, bias), width, feed(), eps) for _ in range(layers))
        self.norm = RmsNorm(width, eps)
        self.output = None if tied else nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        batch, length = tokens.shape
        x = self.words(tokens)
        rotary, hidden = rotary_tables(length, self.head, self.base), future(length)
        for layer in self.layers:
            x = layer(x, batch, rotary, hidden)
        x = self.norm(x)
        return nn.functional.linear(x, self.words.weight) if self.output is None else self.output(x)


def decoder(name, family, build, words, published, source, note=""):
    return Net(name, family, build, (Input("tokens", (("batch", 1), ("seq", 128)), "int", words),), ("logits",), source,
               published, symbolic=True, merged=True, output_axes={"logits": {0: "batch", 1: "seq"}}, note=note)


def nets():
    def llama():
        return Decoder(128256, 32, 4096, 32, 8, lambda: SwiGlu(4096, 14336), 500000.0)

    def mistral():
        return Decoder(32000, 32, 4096, 32, 8, lambda: SwiGlu(4096, 14336), 10000.0)

    def qwen():
        return Decoder(151936, 28, 1536, 12, 2, lambda: SwiGlu(1536, 8960), 1000000.0, bias=True, tied=True, eps=1e-6)

    def mixtral():
        return Decoder(32000, 32, 4096, 32, 8, lambda: Mixture(4096, 14336), 1000000.0)

    return [
        decoder("llama3_8b", "llama", llama, 128256, 8030261248, f"{PUBLISHED} Meta-Llama-3-8B"),
        decoder("mistral_7b", "llama", mistral, 32000, 7241732096, f"{PUBLISHED} Mistral-7B-v0.1",
                "without the sliding window of 4096 tokens"),
        decoder("qwen2_5_1b5", "llama", qwen, 151936, 1543714304, f"{PUBLISHED} Qwen2.5-1.5B",
                "tied output layer; query, key and value have biases"),
        decoder("mixtral_8x7b", "mixture of experts", mixtral, 32000, 46702792704, f"{PUBLISHED} Mixtral-8x7B-v0.1",
                "two of eight experts a token, all experts equally loaded: batch x seq must be a multiple of 4"),
    ]
