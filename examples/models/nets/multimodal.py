# SPDX-License-Identifier: Apache-2.0
"""Nets of two kinds of data: CLIP (Radford et al. 2021) and Whisper (Radford et al. 2022)."""
import torch
from torch import nn
from torch.nn.functional import gelu

from nets.attention import FeedForward, WideAttention, future, sinusoids
from nets.spec import Input, Net, image

CLIP_WORDS, CLIP_LENGTH = 49408, 77
WHISPER_WORDS, WHISPER_POSITIONS = 51865, 448


class QuickGelu(nn.Module):
    def forward(self, x):
        return x * (1.702 * x).sigmoid()


class Block(nn.Module):
    """A pre-norm layer; `cross` adds attention to the encoder's output."""

    def __init__(self, width, heads, activation, biases=(True, True, True), cross=False):
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(width), WideAttention(width, heads, biases=biases)
        self.cross_norm = nn.LayerNorm(width) if cross else None
        self.cross = WideAttention(width, heads, biases=biases) if cross else None
        self.feed_norm, self.feed = nn.LayerNorm(width), FeedForward(width, 4 * width, activation)

    def forward(self, x, batch, memory=None, hidden=None):
        x = x + self.attention(self.attention_norm(x), batch, hidden=hidden)
        if self.cross is not None:
            x = x + self.cross(self.cross_norm(x), batch, memory)
        return x + self.feed(self.feed_norm(x))


class Clip(nn.Module):
    """ViT-B/16 and the text transformer; how alike every picture is to every text comes out."""

    def __init__(self, size=224, patch=16, width=768, heads=12, text=512, text_heads=8, shared=512, layers=12):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch, bias=False)
        self.first = nn.Parameter(torch.empty(width))
        self.places = nn.Parameter(torch.empty((size // patch) ** 2 + 1, width))
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.vision = nn.ModuleList(Block(width, heads, QuickGelu()) for _ in range(layers))
        self.picture = nn.Linear(width, shared, bias=False)
        self.words, self.text_places = nn.Embedding(CLIP_WORDS, text), nn.Parameter(torch.empty(CLIP_LENGTH, text))
        self.layers = nn.ModuleList(Block(text, text_heads, QuickGelu()) for _ in range(layers))
        self.norm, self.sentence = nn.LayerNorm(text), nn.Linear(text, shared, bias=False)
        self.width, self.text = width, text

    def see(self, picture, batch):
        x = self.patches(picture).flatten(2).transpose(1, 2)
        x = self.before(torch.cat([self.first.expand(batch, 1, self.width), x], 1) + self.places)
        for layer in self.vision:
            x = layer(x, batch)
        return self.picture(self.after(x[:, 0]))

    def read(self, tokens, batch):
        x, hidden = self.words(tokens) + self.text_places, future(CLIP_LENGTH)
        for layer in self.layers:
            x = layer(x, batch, hidden=hidden)
        last = tokens.argmax(-1).view(-1, 1, 1).expand(-1, 1, self.text)  # the end mark has the highest number
        return self.sentence(self.norm(x).gather(1, last).view(batch, self.text))

    def forward(self, picture, tokens):
        batch = picture.shape[0]
        seen, read = self.see(picture, batch), self.read(tokens, batch)
        seen, read = seen / seen.norm(dim=-1, keepdim=True), read / read.norm(dim=-1, keepdim=True)
        return seen @ read.t()


class Whisper(nn.Module):
    """The small model: 12 layers a side; the word table is the output layer, keys have no bias."""

    def __init__(self, width=768, heads=12, layers=12, bands=80):
        super().__init__()
        side = lambda cross: nn.ModuleList(
            Block(width, heads, nn.GELU(), (True, False, True), cross) for _ in range(layers))
        self.width = width
        self.conv1, self.conv2 = nn.Conv1d(bands, width, 3, padding=1), nn.Conv1d(width, width, 3, 2, 1)
        self.encoder, self.encoder_norm = side(False), nn.LayerNorm(width)
        self.words, self.places = nn.Embedding(WHISPER_WORDS, width), nn.Embedding(WHISPER_POSITIONS, width)
        self.decoder, self.decoder_norm = side(True), nn.LayerNorm(width)

    def forward(self, sound, tokens):
        batch = sound.shape[0]
        memory = gelu(self.conv2(gelu(self.conv1(sound)))).transpose(1, 2)
        memory = memory + sinusoids(torch.arange(memory.shape[1]), self.width)
        for layer in self.encoder:
            memory = layer(memory, batch)
        memory, length = self.encoder_norm(memory), tokens.shape[1]
        x, hidden = self.words(tokens) + self.places(torch.arange(length)), future(length)
        for layer in self.decoder:
            x = layer(x, batch, memory, hidden)
        return nn.functional.linear(self.decoder_norm(x), self.words.weight)


def nets():
    profile = "docs/model_profile.csv of mlfoundations/open_clip (ViT-B-16: 149.62 M, 41.09 GFLOPs)"
    small = "transformers' WhisperForConditionalGeneration of openai/whisper-small, trained weights (with the fixed " \
            "positions of the encoder 241734912)"
    return [
        Net("clip_vit_b_16", "contrastive", Clip,
            (*image(224), Input("tokens", (("batch", 1), CLIP_LENGTH), "int", CLIP_WORDS)), ("logits",), profile,
            149620000, 10000, 41.09, 2, symbolic=True, merged=True, output_axes={"logits": {0: "batch", 1: "batch"}},
            note="the logits are batch x batch: every picture with every text; without the learned temperature, "
                 "one parameter"),
        Net("whisper_small", "speech", Whisper,
            (Input("sound", (("batch", 1), 80, ("frames", 3000))),
             Input("tokens", (("batch", 1), ("seq", 64)), "int", WHISPER_WORDS)), ("logits",), small, 240582912,
            symbolic=True, merged=True, output_axes={"logits": {0: "batch", 1: "seq"}},
            note="30 s of sound are 3000 frames; the paper's table says 244M"),
    ]
