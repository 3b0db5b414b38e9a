# SPDX-License-Identifier: Apache-2.0
"""BERT encoders (Devlin et al. 2018) and the GPT-2 decoder (Radford et al. 2019)."""
import torch
from torch import nn

from nets.attention import Attention, FeedForward, future
from nets.spec import Input, Net

BERT_WORDS, BERT_POSITIONS = 30522, 512
GPT2_WORDS, GPT2_POSITIONS = 50257, 1024


class BertLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.attention_norm = nn.LayerNorm(width, eps=1e-12)
        self.feed = FeedForward(width, 4 * width, nn.GELU())
        self.feed_norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x, hidden):
        x = self.attention_norm(x + self.attention(x, hidden=hidden))
        return self.feed_norm(x + self.feed(x))


class Bert(nn.Module):
    """Embeddings of words, positions and sentence types, post-norm layers, a pooler on the first token."""

    def __init__(self, layers, width, heads):
        super().__init__()
        self.words = nn.Embedding(BERT_WORDS, width)
        self.positions = nn.Embedding(BERT_POSITIONS, width)
        self.types = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer(width, heads) for _ in range(layers))
        self.pooler = nn.Linear(width, width)

    def forward(self, tokens, types, mask):
        places = torch.arange(tokens.shape[1]).unsqueeze(0)
        x = self.norm(self.words(tokens) + self.positions(places) + self.types(types))
        hidden = (mask == 0).unsqueeze(1).unsqueeze(2)
        for layer in self.layers:
            x = layer(x, hidden)
        return x, self.pooler(x[:, 0]).tanh()


class Gpt2Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = FeedForward(width, 4 * width, nn.GELU())

    def forward(self, x, hidden):
        x = x + self.attention(self.attention_norm(x), hidden=hidden)
        return x + self.feed(self.feed_norm(x))


class Gpt2(nn.Module):
    """Pre-norm decoder; the output layer is the transposed word table."""

    def __init__(self, layers=12, width=768, heads=12):
        super().__init__()
        self.words = nn.Embedding(GPT2_WORDS, width)
        self.positions = nn.Embedding(GPT2_POSITIONS, width)
        self.layers = nn.ModuleList(Gpt2Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.words(tokens) + self.positions(torch.arange(length))
        hidden = future(length)
        for layer in self.layers:
            x = layer(x, hidden)
        return nn.functional.linear(self.norm(x), self.words.weight)


def bert_inputs(length):
    axes = (("batch", 1), ("seq", length))
    return (Input("tokens", axes, "int", BERT_WORDS), Input("types", axes, "int"), Input("mask", axes, "int"))


def bert(name, layers, width, heads, published, source, opset, note=""):
    return Net(name, "transformer encoder", lambda: Bert(layers, width, heads), bert_inputs(128),
               ("hidden", "pooled"), source, published, opset=opset, note=note,
               output_axes={"hidden": {0: "batch", 1: "seq"}, "pooled": {0: "batch"}})


def turc(layers, width):
    """One of the small encoders of Turc et al. 2019: a head for every 64 features."""
    return bert(f"bert_l{layers}_h{width}", layers, width, width // 64, None, "", 13,
                f"Turc et al. 2019: {layers} layers, hidden {width}, {width // 64} heads, inner {4 * width}")


def nets():
    paper = "transformers' BertModel of bert-base-uncased (public write-ups); Devlin et al. 2018 says 110M"
    small = "model table of the adapter-distillation repository that lists BERT-Tiny and BERT-Small"
    return [
        bert("bert_base", 12, 768, 12, 109482240, paper, 17),
        bert("bert_large", 24, 1024, 16, None, "", 17, "Devlin et al. 2018: 24 layers, hidden 1024, 16 heads"),
        bert("bert_tiny", 2, 128, 2, 4385920, small, 13),
        bert("bert_small", 4, 512, 8, 28763648, small, 13),
        *(turc(layers, width) for layers, width in ((2, 256), (2, 512), (2, 768), (4, 128), (4, 256))),
        Net("gpt2", "transformer decoder", Gpt2,
            (Input("tokens", (("batch", 1), ("seq", 128)), "int", GPT2_WORDS),), ("logits",),
            "onnx/models turnkey statistics of transformers' gpt2", 124439808, symbolic=True,
            output_axes={"logits": {0: "batch", 1: "seq"}},
            note="tied output layer: the word table is read by Gather and, transposed, by MatMul"),
    ]
