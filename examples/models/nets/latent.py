# SPDX-License-Identifier: Apache-2.0
"""Denoisers of latent diffusion: the U-Net of SDXL (Podell et al. 2023) and DiT (Peebles and Xie 2023)."""
import torch
from torch import nn
from torch.nn.functional import gelu, interpolate, layer_norm, silu

from nets.attention import FeedForward, WideAttention, sinusoids
from nets.generative import TimedResidual
from nets.spec import Input, Net

NO_BIAS = (False, False, False)


def coder(inner, outer):
    return nn.Sequential(nn.Linear(inner, outer), nn.SiLU(), nn.Linear(outer, outer))


class GatedFeed(nn.Module):
    """Shazeer 2020: one half of a linear layer gates the other by GELU."""

    def __init__(self, width):
        super().__init__()
        self.expand, self.shrink = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        value, gate = self.expand(x).chunk(2, -1)
        return self.shrink(value * gelu(gate))


class TextBlock(nn.Module):
    """Attention between pixels, then from pixels to the words of the prompt."""

    def __init__(self, width, text):
        super().__init__()
        heads = width // 64
        self.pixels_norm, self.pixels = nn.LayerNorm(width), WideAttention(width, heads, biases=NO_BIAS)
        self.words_norm, self.words = nn.LayerNorm(width), WideAttention(width, heads, text, NO_BIAS)
        self.feed_norm, self.feed = nn.LayerNorm(width), GatedFeed(width)

    def forward(self, x, batch, text):
        x = x + self.pixels(self.pixels_norm(x), batch)
        x = x + self.words(self.words_norm(x), batch, text)
        return x + self.feed(self.feed_norm(x))


class TextAttention(nn.Module):
    """`depth` blocks over the pixels of a feature map."""

    def __init__(self, width, depth, text):
        super().__init__()
        self.norm, self.width = nn.GroupNorm(32, width, 1e-6), width
        self.before, self.after = nn.Linear(width, width), nn.Linear(width, width)
        self.blocks = nn.ModuleList(TextBlock(width, text) for _ in range(depth))

    def forward(self, x, batch, text):
        height, wide = x.shape[2:]
        y = self.before(self.norm(x).view(batch, self.width, -1).transpose(1, 2))
        for block in self.blocks:
            y = block(y, batch, text)
        return x + self.after(y).transpose(1, 2).reshape(batch, self.width, height, wide)


class TextUNet(nn.Module):
    """Three levels; `depths` are the blocks of each attention of a level."""

    def __init__(self, base=320, factors=(1, 2, 4), depths=(0, 2, 10), text=2048, pooled=1280, blocks=2):
        super().__init__()
        code = 4 * base
        self.base, self.blocks = base, blocks
        self.time, self.extra = coder(base, code), coder(pooled + 6 * 256, code)
        self.stem = nn.Conv2d(4, base, 3, padding=1)
        self.down, self.shrink, self.up, self.grow = (nn.ModuleList() for _ in range(4))

        def stage(inner, outer, depth):
            attention = [TextAttention(outer, depth, text)] if depth else []
            return nn.ModuleList([TimedResidual(inner, outer, code), *attention])

        width, skips = base, [base]
        for level, (factor, depth) in enumerate(zip(factors, depths)):
            for _ in range(blocks):
                self.down.append(stage(width, base * factor, depth))
                width = base * factor
                skips.append(width)
            if level + 1 < len(factors):
                self.shrink.append(nn.Conv2d(width, width, 3, 2, 1))
                skips.append(width)
        self.middle = nn.ModuleList([*stage(width, width, depths[-1]), TimedResidual(width, width, code)])
        for level, (factor, depth) in reversed(list(enumerate(zip(factors, depths)))):
            for _ in range(blocks + 1):
                self.up.append(stage(width + skips.pop(), base * factor, depth))
                width = base * factor
            if level:
                self.grow.append(nn.Conv2d(width, width, 3, padding=1))
        self.norm, self.output = nn.GroupNorm(32, width), nn.Conv2d(width, 4, 3, padding=1)

    @staticmethod
    def run(parts, x, code, batch, text):
        for part in parts:
            x = part(x, code) if isinstance(part, TimedResidual) else part(x, batch, text)
        return x

    def forward(self, latent, step, text, pooled, sizes):
        batch = latent.shape[0]
        extra = torch.cat([pooled, sinusoids(sizes, 256).reshape(batch, 6 * 256)], -1)
        code = self.time(sinusoids(step, self.base)) + self.extra(extra)
        x = self.stem(latent)
        skips = [x]
        for index, parts in enumerate(self.down):
            x = self.run(parts, x, code, batch, text)
            skips.append(x)
            level, last = divmod(index + 1, self.blocks)
            if last == 0 and level <= len(self.shrink):
                x = self.shrink[level - 1](x)
                skips.append(x)
        x = self.run(self.middle, x, code, batch, text)
        for index, parts in enumerate(self.up):
            x = self.run(parts, torch.cat([x, skips.pop()], 1), code, batch, text)
            level, last = divmod(index + 1, self.blocks + 1)
            if last == 0 and level <= len(self.grow):
                x = self.grow[level - 1](interpolate(x, scale_factor=2, mode="nearest"))
        return self.output(silu(self.norm(x)))


class PlainNorm(nn.Module):
    """Layer normalisation without weights of its own; ones and zeros stand for them, as newer exporters write it."""

    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x):
        return layer_norm(x, (self.width,), torch.ones(self.width), torch.zeros(self.width), 1e-6)


def shifted(x, shift, scale):
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class ConditionedBlock(nn.Module):
    """A transformer layer whose norms and sums are steered by the code of time and class (adaLN-Zero)."""

    def __init__(self, width, heads):
        super().__init__()
        self.steer = nn.Linear(width, 6 * width)
        self.attention_norm = PlainNorm(width)
        self.feed_norm = PlainNorm(width)
        self.attention = WideAttention(width, heads)
        self.feed = FeedForward(width, 4 * width, nn.GELU("tanh"))

    def forward(self, x, code, batch):
        steer = self.steer(silu(code)).chunk(6, -1)
        x = x + steer[2].unsqueeze(1) * self.attention(shifted(self.attention_norm(x), *steer[:2]), batch)
        return x + steer[5].unsqueeze(1) * self.feed(shifted(self.feed_norm(x), *steer[3:5]))


class DiT(nn.Module):
    """XL/2 on latents of 32 x 32; mean and variance come out. Position codes are computed in the graph."""

    def __init__(self, width=1152, heads=16, layers=28, side=16, classes=1000):
        super().__init__()
        self.width, self.side = width, side
        self.patches = nn.Conv2d(4, width, 2, 2)
        self.time, self.classes = coder(256, width), nn.Embedding(classes + 1, width)
        self.layers = nn.ModuleList(ConditionedBlock(width, heads) for _ in range(layers))
        self.steer = nn.Linear(width, 2 * width)
        self.norm = PlainNorm(width)
        self.output = nn.Linear(width, 2 * 2 * 8)

    def places(self):
        """[side * side, width]: half of the features code the row, half the column."""
        line = sinusoids(torch.arange(self.side), self.width // 2)
        rows = line.unsqueeze(1).expand(self.side, self.side, self.width // 2)
        return torch.cat([rows, rows.transpose(0, 1)], -1).reshape(self.side * self.side, self.width)

    def forward(self, latent, step, label):
        batch = latent.shape[0]
        x = self.patches(latent).flatten(2).transpose(1, 2) + self.places()
        code = self.time(sinusoids(step, 256)) + self.classes(label)
        for layer in self.layers:
            x = layer(x, code, batch)
        x = self.output(shifted(self.norm(x), *self.steer(silu(code)).chunk(2, -1)))
        x = x.view(batch, self.side, self.side, 2, 2, 8).permute(0, 5, 1, 3, 2, 4)
        return x.reshape(batch, 8, 2 * self.side, 2 * self.side)


def nets():
    batch = ("batch", 1)
    return [
        Net("sdxl_unet", "diffusion", TextUNet,
            (Input("latent", (batch, 4, ("height", 128), ("width", 128))), Input("step", (batch,), "int", 1000),
             Input("text", (batch, 77, 2048)), Input("pooled", (batch, 1280)),
             Input("sizes", (batch, 6), "int", 1024)), ("noise",),
            "parameters of the published checkpoint stable-diffusion-xl-base-1.0", 2567463684, symbolic=True,
            merged=True, output_axes={"noise": {0: "batch", 2: "height", 3: "width"}},
            note="latents of 128 x 128 are pictures of 1024 x 1024; both sides are multiples of 4"),
        Net("dit_xl_2", "diffusion", DiT,
            (Input("latent", (batch, 4, 32, 32)), Input("step", (batch,), "int", 1000),
             Input("label", (batch,), "int", 1000)), ("noise",),
            "Peebles and Xie 2023, table 4 (675M, 118.6 Gflops at 256 x 256)", 675000000, 1000000, 118.6, 1,
            symbolic=True, merged=True, note="latents of 32 x 32 are pictures of 256 x 256"),
    ]
