# SPDX-License-Identifier: Apache-2.0
"""The translation Transformer (Vaswani et al. 2017) and recurrent language models."""
import math

import torch
from torch import nn

from nets.attention import Attention, FeedForward, future, sinusoids
from nets.spec import Input, Net

WIDTH, HEADS, INNER, LAYERS = 512, 8, 2048, 6  # the paper's base model


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.attention_norm = Attention(WIDTH, HEADS), nn.LayerNorm(WIDTH)
        self.feed, self.feed_norm = FeedForward(WIDTH, INNER, nn.ReLU()), nn.LayerNorm(WIDTH)

    def forward(self, x):
        x = self.attention_norm(x + self.attention(x))
        return self.feed_norm(x + self.feed(x))


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.attention_norm = Attention(WIDTH, HEADS), nn.LayerNorm(WIDTH)
        self.cross, self.cross_norm = Attention(WIDTH, HEADS), nn.LayerNorm(WIDTH)
        self.feed, self.feed_norm = FeedForward(WIDTH, INNER, nn.ReLU()), nn.LayerNorm(WIDTH)

    def forward(self, x, memory, hidden):
        x = self.attention_norm(x + self.attention(x, hidden=hidden))
        x = self.cross_norm(x + self.cross(x, memory))
        return self.feed_norm(x + self.feed(x))


class Translator(nn.Module):
    """Encoder and decoder; one word table serves both sides and, transposed, the output (as in the paper)."""

    def __init__(self, words, target_words=None):
        super().__init__()
        self.source_words = nn.Embedding(words, WIDTH)
        self.target_words = nn.Embedding(target_words, WIDTH) if target_words else self.source_words
        self.encoder = nn.ModuleList(EncoderLayer() for _ in range(LAYERS))
        self.decoder = nn.ModuleList(DecoderLayer() for _ in range(LAYERS))

    @staticmethod
    def embed(table, tokens):
        return table(tokens) * math.sqrt(WIDTH) + sinusoids(torch.arange(tokens.shape[1]), WIDTH)

    def forward(self, source, target):
        memory = self.embed(self.source_words, source)
        for layer in self.encoder:
            memory = layer(memory)
        x, hidden = self.embed(self.target_words, target), future(target.shape[1])
        for layer in self.decoder:
            x = layer(x, memory, hidden)
        return nn.functional.linear(x, self.target_words.weight)


class WordModel(nn.Module):
    """Embedding, stacked LSTM, linear output: sequence first, states in and out."""

    def __init__(self, words, width, layers):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.cells = nn.LSTM(width, width, layers)
        self.output = nn.Linear(width, words)

    def forward(self, tokens, state, cell):
        x, (state, cell) = self.cells(self.words(tokens), (state, cell))
        return self.output(x), state, cell


class GruTranslator(nn.Module):
    """Sutskever-style sequence to sequence with gated recurrent units (Cho et al. 2014)."""

    def __init__(self, words, width, layers):
        super().__init__()
        self.source_words, self.target_words = nn.Embedding(words, width), nn.Embedding(words, width)
        self.encoder = nn.GRU(width, width, layers, batch_first=True)
        self.decoder = nn.GRU(width, width, layers, batch_first=True)
        self.output = nn.Linear(width, words)

    def forward(self, source, target):
        _, state = self.encoder(self.source_words(source))
        x, _ = self.decoder(self.target_words(target), state)
        return self.output(x)


def pair(words, length, target_words=None):
    return (Input("source", (("batch", 1), ("src_seq", length)), "int", words),
            Input("target", (("batch", 1), ("tgt_seq", length)), "int", target_words or words))


def nets():
    batch_target = {"logits": {0: "batch", 1: "tgt_seq"}}
    words, width, layers = 33278, 200, 2  # WikiText-2 vocabulary, defaults of the PyTorch word language model
    state = (layers, ("batch", 1), width)
    return [
        Net("transformer_base", "translation", lambda: Translator(37000), pair(37000, 64), ("logits",), symbolic=True,
            source="public recounts of the paper's base model with 37000 shared words",
            published_parameters=63082496, output_axes=batch_target,
            note="the paper's own table says 65e6 and leaves the vocabulary at about 37000 words"),
        Net("transformer_multi30k", "translation", lambda: Translator(9521), pair(9521, 32), ("logits",),
            symbolic=True, output_axes=batch_target, note="short sentences, one shared vocabulary of 9521 words"),
        Net("lstm_wikitext2", "recurrent language model", lambda: WordModel(words, width, layers),
            (Input("tokens", (("seq", 35), ("batch", 1)), "int", words), Input("state", state), Input("cell", state)),
            ("logits", "next_state", "next_cell"), opset=14,
            output_axes={"logits": {0: "seq", 1: "batch"}, "next_state": {1: "batch"}, "next_cell": {1: "batch"}}),
        Net("gru_seq2seq", "recurrent translation", lambda: GruTranslator(30000, 512, 2), pair(30000, 32), ("logits",),
            opset=14, output_axes=batch_target),
    ]
