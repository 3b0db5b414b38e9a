# SPDX-License-Identifier: Apache-2.0
"""Decoders like Llama 3, Qwen 1, 2 and 3, with parameters named as transformers names them; and LoRA beside them."""
import torch
from torch import nn

from nets.attention import attend, future, merge_heads, split_heads
from nets.llama import RmsNorm, rotary_tables, rotate


class Adapted:
    """A linear layer, and what LoRA adds to it: two thin layers side by side with it."""

    def __init__(self, layer, thin):
        self.layer, self.thin = layer, thin

    def __call__(self, x):
        y = self.layer(x)
        return y if self.thin is None else y + self.thin(x) * 2.0  # alpha over rank: one kernel, whatever its value


class Attention(nn.Module):
    def __init__(self, width, heads, shared, head, bias, head_norms):
        super().__init__()
        self.heads, self.shared = heads, shared
        self.q_proj = nn.Linear(width, heads * head, bias=bias)
        self.k_proj = nn.Linear(width, shared * head, bias=bias)
        self.v_proj = nn.Linear(width, shared * head, bias=bias)
        self.o_proj = nn.Linear(heads * head, width, bias=False)
        self.q_norm = RmsNorm(head) if head_norms else nn.Identity()
        self.k_norm = RmsNorm(head) if head_norms else nn.Identity()

    def repeat(self, x):
        """[batch, shared, seq, head] -> [batch, heads, seq, head]"""
        group = self.heads // self.shared
        if group == 1:
            return x
        batch, _, length, head = x.shape
        return x.unsqueeze(2).expand(batch, self.shared, group, length, head).reshape(batch, self.heads, length, head)

    def forward(self, x, rotary, hidden, adapt):
        query = rotate(self.q_norm(split_heads(adapt(self, "q_proj")(x), self.heads)), *rotary)
        key = rotate(self.k_norm(split_heads(adapt(self, "k_proj")(x), self.shared)), *rotary)
        value = split_heads(adapt(self, "v_proj")(x), self.shared)
        attended = attend(query, self.repeat(key), self.repeat(value), hidden)
        return adapt(self, "o_proj")(merge_heads(attended))


class Feed(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x, adapt):
        gated = nn.functional.silu(adapt(self, "gate_proj")(x)) * adapt(self, "up_proj")(x)
        return adapt(self, "down_proj")(gated)


class Layer(nn.Module):
    def __init__(self, width, heads, shared, head, inner, bias, head_norms):
        super().__init__()
        self.input_layernorm = RmsNorm(width)
        self.self_attn = Attention(width, heads, shared, head, bias, head_norms)
        self.post_attention_layernorm = RmsNorm(width)
        self.mlp = Feed(width, inner)

    def forward(self, x, rotary, hidden, adapt):
        x = x + self.self_attn(self.input_layernorm(x), rotary, hidden, adapt)
        return x + self.mlp(self.post_attention_layernorm(x), adapt)


class Decoder(nn.Module):
    """Adapters stand apart from the model: `model;lm_head` are the prefixes of what LoRA leaves frozen."""

    def __init__(self, words, layers, width, heads, shared, head, inner, tied=False, bias=False, head_norms=False,
                 adapters=(), rank=0):
        super().__init__()
        self.head = head
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(words, width)
        self.model.layers = nn.ModuleList(Layer(width, heads, shared, head, inner, bias, head_norms)
                                          for _ in range(layers))
        self.model.norm = RmsNorm(width)
        if not tied:
            self.lm_head = nn.Linear(width, words, bias=False)
        self.tied = tied
        self.adapters = nn.ModuleList(nn.ModuleDict(thin_layers(layer, adapters, rank))
                                      for layer in self.model.layers if adapters)

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.model.embed_tokens(tokens)
        rotary, hidden = rotary_tables(length, self.head), future(length)
        for number, layer in enumerate(self.model.layers):
            thin = self.adapters[number] if self.adapters else {}
            adapt = lambda module, name: Adapted(getattr(module, name), thin[name] if name in thin else None)
            x = layer(x, rotary, hidden, adapt)
        x = self.model.norm(x)
        return nn.functional.linear(x, self.model.embed_tokens.weight) if self.tied else self.lm_head(x)


def thin_layers(layer, names, rank):
    """Two layers of LoRA for each named linear layer."""
    made = {}
    for module in (layer.self_attn, layer.mlp):
        for name in (name for name in names if hasattr(module, name)):
            wide = getattr(module, name)
            made[name] = nn.Sequential(nn.Linear(wide.in_features, rank, bias=False),
                                       nn.Linear(rank, wide.out_features, bias=False))
    return made
