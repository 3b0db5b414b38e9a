# SPDX-License-Identifier: Apache-2.0
"""Image generators: DCGAN, CycleGAN, the DDPM denoiser, and the U-Net of Ronneberger et al. 2015."""
import torch
from torch import nn
from torch.nn.functional import interpolate, pad, silu

from nets.attention import sinusoids
from nets.spec import Input, Net, image


def dcgan_generator(noise=100, width=64):
    """Radford et al. 2016: transposed convolutions from 1x1 to 64x64."""
    sizes = [noise, 8 * width, 4 * width, 2 * width, width]
    layers = []
    for index, (inner, outer) in enumerate(zip(sizes, sizes[1:])):
        layers += [nn.ConvTranspose2d(inner, outer, 4, 2 if index else 1, 1 if index else 0, bias=False),
                   nn.BatchNorm2d(outer), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())


def dcgan_discriminator(width=64):
    layers = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)]
    for step in (1, 2, 4):
        layers += [nn.Conv2d(step * width, 2 * step * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * step * width),
                   nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Conv2d(8 * width, 1, 4, 1, 0, bias=False), nn.Sigmoid(), nn.Flatten())


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3), nn.InstanceNorm2d(width), nn.ReLU(),
            nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3), nn.InstanceNorm2d(width))

    def forward(self, x):
        return x + self.body(x)


def cyclegan_generator(blocks=9):
    """Zhu et al. 2017, appendix: c7s1-64, d128, d256, nine residual blocks, u128, u64, c7s1-3."""
    layers = [nn.ReflectionPad2d(3), nn.Conv2d(3, 64, 7), nn.InstanceNorm2d(64), nn.ReLU()]
    for width in (64, 128):
        layers += [nn.Conv2d(width, 2 * width, 3, 2, 1), nn.InstanceNorm2d(2 * width), nn.ReLU()]
    layers += [Residual(256) for _ in range(blocks)]
    for width in (256, 128):
        layers += [nn.ConvTranspose2d(width, width // 2, 3, 2, 1, output_padding=1), nn.InstanceNorm2d(width // 2),
                   nn.ReLU()]
    return nn.Sequential(*layers, nn.ReflectionPad2d(3), nn.Conv2d(64, 3, 7), nn.Tanh())


def cyclegan_discriminator():
    """The 70x70 patch discriminator of the same appendix."""
    layers = [nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2)]
    for inner, outer, stride in ((64, 128, 2), (128, 256, 2), (256, 512, 1)):
        layers += [nn.Conv2d(inner, outer, 4, stride, 1), nn.InstanceNorm2d(outer), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Conv2d(512, 1, 4, 1, 1))


class CycleGanStep(nn.Module):
    """Zhu et al. 2017: all that one training step computes, two generators and two discriminators run six times each.

    `old_a` and `old_b` are earlier fakes from the history buffer; the losses compare the outputs with the inputs.
    """

    def __init__(self):
        super().__init__()
        self.to_a, self.to_b = cyclegan_generator(), cyclegan_generator()
        self.is_a, self.is_b = cyclegan_discriminator(), cyclegan_discriminator()

    def forward(self, real_a, real_b, old_a, old_b):
        same_a, same_b = self.to_a(real_a), self.to_b(real_b)
        fake_b, fake_a = self.to_b(real_a), self.to_a(real_b)
        cycle_a, cycle_b = self.to_a(fake_b), self.to_b(fake_a)
        return (same_a, same_b, fake_b, fake_a, cycle_a, cycle_b, self.is_b(fake_b), self.is_a(fake_a),
                self.is_a(real_a), self.is_a(old_a), self.is_b(real_b), self.is_b(old_b))


def upscale(inner, outer, stride, last):
    return [nn.ConvTranspose2d(inner, outer, 5, stride, 2, stride - 1, bias=False), *last]


class DcganMnistStep(nn.Module):
    """The DCGAN of TensorFlow's tutorial on 28x28 digits, one training step: what the critic says of fake and real."""

    def __init__(self, noise=100):
        super().__init__()
        grown = lambda width: [nn.BatchNorm2d(width), nn.LeakyReLU(0.3)]
        self.start = nn.Sequential(nn.Linear(noise, 256 * 49, bias=False), nn.BatchNorm1d(256 * 49), nn.LeakyReLU(0.3))
        self.grow = nn.Sequential(*upscale(256, 128, 1, grown(128)), *upscale(128, 64, 2, grown(64)),
                                  *upscale(64, 1, 2, [nn.Tanh()]))
        self.discriminator = nn.Sequential(
            nn.Conv2d(1, 64, 5, 2, 2), nn.LeakyReLU(0.3), nn.Conv2d(64, 128, 5, 2, 2), nn.LeakyReLU(0.3), nn.Flatten(),
            nn.Linear(128 * 49, 1))

    def forward(self, noise, real):
        fake = self.grow(self.start(noise).view(-1, 256, 7, 7))
        return self.discriminator(fake), self.discriminator(real)


class TimedResidual(nn.Module):
    """Two normalised convolutions; the time code is added between them."""

    def __init__(self, inner, outer, code):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, inner), nn.Conv2d(inner, outer, 3, padding=1)
        self.time = nn.Linear(code, outer)
        self.norm2, self.conv2 = nn.GroupNorm(32, outer), nn.Conv2d(outer, outer, 3, padding=1)
        self.shortcut = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x, code):
        y = self.conv1(silu(self.norm1(x))) + self.time(silu(code))[:, :, None, None]
        return self.shortcut(x) + self.conv2(silu(self.norm2(y)))


class PixelAttention(nn.Module):
    """Single-head attention between the pixels of a feature map."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.GroupNorm(32, width)
        self.query, self.key, self.value, self.output = (nn.Conv2d(width, width, 1) for _ in range(4))

    def forward(self, x):
        y = self.norm(x)
        query, key, value = self.query(y).flatten(2), self.key(y).flatten(2), self.value(y).flatten(2)
        weight = (query.transpose(1, 2) @ key * x.shape[1] ** -0.5).softmax(-1)
        return x + self.output((value @ weight.transpose(1, 2)).view_as(x))


class Denoiser(nn.Module):
    """Ho et al. 2020, appendix B, CIFAR-10: widths 128 to 256, two blocks a level, attention at 16x16."""

    def __init__(self, base=128, factors=(1, 2, 2, 2), blocks=2, attention_level=1):
        super().__init__()
        code = 4 * base
        self.base = base
        self.time = nn.Sequential(nn.Linear(base, code), nn.SiLU(), nn.Linear(code, code))
        self.stem = nn.Conv2d(3, base, 3, padding=1)
        self.down, self.shrink, self.up, self.grow = (nn.ModuleList() for _ in range(4))
        attention = lambda level, width: PixelAttention(width) if level == attention_level else nn.Identity()
        width, skips = base, [base]
        for level, factor in enumerate(factors):
            for _ in range(blocks):
                self.down.append(nn.ModuleList([TimedResidual(width, base * factor, code),
                                                attention(level, base * factor)]))
                width = base * factor
                skips.append(width)
            if level + 1 < len(factors):
                self.shrink.append(nn.Conv2d(width, width, 3, stride=2))
                skips.append(width)
        self.middle1, self.middle2 = TimedResidual(width, width, code), TimedResidual(width, width, code)
        self.middle_attention = PixelAttention(width)
        for level, factor in reversed(list(enumerate(factors))):
            for _ in range(blocks + 1):
                self.up.append(nn.ModuleList([TimedResidual(width + skips.pop(), base * factor, code),
                                              attention(level, base * factor)]))
                width = base * factor
            if level:
                self.grow.append(nn.Conv2d(width, width, 3, padding=1))
        self.norm, self.output = nn.GroupNorm(32, width), nn.Conv2d(width, 3, 3, padding=1)
        self.blocks = blocks

    def forward(self, picture, step):
        code = self.time(sinusoids(step, self.base))
        x = self.stem(picture)
        skips = [x]
        for index, (block, attention) in enumerate(self.down):
            x = attention(block(x, code))
            skips.append(x)
            level, last = divmod(index + 1, self.blocks)
            if last == 0 and level <= len(self.shrink):
                x = self.shrink[level - 1](pad(x, (0, 1, 0, 1)))
                skips.append(x)
        x = self.middle2(self.middle_attention(self.middle1(x, code)), code)
        for index, (block, attention) in enumerate(self.up):
            x = attention(block(torch.cat([x, skips.pop()], 1), code))
            level, last = divmod(index + 1, self.blocks + 1)
            if last == 0 and level <= len(self.grow):
                x = self.grow[level - 1](interpolate(x, scale_factor=2, mode="nearest"))
        return self.output(silu(self.norm(x)))


def double(inner, outer):
    return nn.Sequential(nn.Conv2d(inner, outer, 3), nn.ReLU(), nn.Conv2d(outer, outer, 3), nn.ReLU())


class UNet(nn.Module):
    """Unpadded convolutions: 572x572 in, 388x388 out, skips cropped to the centre."""

    def __init__(self, widths=(64, 128, 256, 512, 1024), classes=2):
        super().__init__()
        self.down = nn.ModuleList(double(i, o) for i, o in zip((1,) + widths, widths))
        backwards = list(reversed(widths))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, 2) for i, o in zip(backwards, backwards[1:]))
        self.up = nn.ModuleList(double(i, o) for i, o in zip(backwards, backwards[1:]))
        self.pool, self.output = nn.MaxPool2d(2), nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        skips = []
        for index, block in enumerate(self.down):
            x = block(self.pool(x) if index else x)
            skips.append(x)
        for grow, block, skip in zip(self.grow, self.up, reversed(skips[:-1])):
            x = grow(x)
            cut = (int(skip.shape[2]) - int(x.shape[2])) // 2
            x = block(torch.cat([skip[:, :, cut:cut + int(x.shape[2]), cut:cut + int(x.shape[3])], x], 1))
        return self.output(x)


def nets():
    printed = "training log of junyanz/pytorch-CycleGAN-and-pix2pix (11.378 M and 2.765 M)"
    tutorial = "summary of the nets of PyTorch's DCGAN tutorial, as public write-ups print it"
    cifar = "google/ddpm-cifar10-32 as loaded by diffusers; Ho et al. 2020, appendix B says 35.7M"
    paper = "summaries of the 2015 U-Net in public write-ups (base 64, unpadded, 2 classes)"
    noisy = (*image(32), Input("step", (("batch", 1),), "int", 1000))
    return [
        Net("dcgan_generator", "gan", dcgan_generator, (Input("noise", (("batch", 1), 100, 1, 1)),),
            source=tutorial, published_parameters=3576704, opset=13),
        Net("dcgan_discriminator", "gan", dcgan_discriminator, image(64), source=tutorial,
            published_parameters=2765568, opset=13),
        Net("cyclegan_generator", "gan", cyclegan_generator, image(256), ("output",), printed, 11378000, 1000,
            opset=13),
        Net("cyclegan_discriminator", "gan", cyclegan_discriminator, image(256), ("output",), printed, 2765000, 1000,
            opset=13),
        Net("cyclegan", "gan", CycleGanStep,
            tuple(image(256, name=name)[0] for name in ("real_a", "real_b", "old_a", "old_b")),
            ("same_a", "same_b", "fake_b", "fake_a", "cycle_a", "cycle_b", "b_of_fake_b", "a_of_fake_a", "a_of_real_a",
             "a_of_old_a", "b_of_real_b", "b_of_old_b"), opset=10,
            note="a whole training step of Zhu et al. 2017: identities, fakes and cycles, and what the discriminators "
                 "say of fakes, real and old pictures; weights are shared between the passes"),
        Net("dcgan_mnist", "gan", DcganMnistStep,
            (Input("noise", (("batch", 1), 100)), *image(28, 1, "real")), ("of_fake", "of_real"), opset=13,
            note="a whole training step of the DCGAN of TensorFlow's tutorial: generator, discriminator twice"),
        Net("ddpm_cifar10", "diffusion", Denoiser, noisy, ("noise",), cifar, 35746307),
        Net("unet", "segmentation", UNet, image(572, 1), source=paper, published_parameters=31030658, opset=11),
    ]
