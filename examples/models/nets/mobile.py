# SPDX-License-Identifier: Apache-2.0
"""Classifiers of small budgets that torchvision lacks: MobileNet (Howard et al. 2017), NASNet-A (Zoph et al. 2018)."""
import torch
from torch import nn
from torch.nn.functional import pad

from nets.spec import Net, image

SIGNS = 43  # classes of the German traffic sign benchmark (GTSRB)


def conv(inner, outer, kernel, stride=1, padding=None, groups=1):
    """A convolution without bias that keeps the size up to its stride."""
    return nn.Conv2d(inner, outer, kernel, stride, kernel // 2 if padding is None else padding, groups=groups,
                     bias=False)


def mobilenet_v1(classes=1000):
    """Howard et al. 2017, table 1: a full convolution, thirteen depthwise and pointwise pairs, a linear layer."""
    layers, inner = [conv(3, 32, 3, 2), nn.BatchNorm2d(32), nn.ReLU()], 32
    for outer, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *5 * [(512, 1)], (1024, 2),
                          (1024, 1)):
        layers += [conv(inner, inner, 3, stride, groups=inner), nn.BatchNorm2d(inner), nn.ReLU(),
                   conv(inner, outer, 1), nn.BatchNorm2d(outer), nn.ReLU()]
        inner = outer
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, classes))


def separable(inner, outer, kernel, stride=1):
    """NASNet's: ReLU, depthwise and pointwise convolution, normalisation, all of it twice; the first strides."""
    layers = []
    for source, step in ((inner, stride), (outer, 1)):
        layers += [nn.ReLU(), conv(source, source, kernel, step, groups=source), conv(source, outer, 1),
                   nn.BatchNorm2d(outer)]
    return nn.Sequential(*layers)


def average(stride=1, kernel=3):
    return nn.AvgPool2d(kernel, stride, kernel // 2, count_include_pad=False)


def project(inner, outer):
    return nn.Sequential(nn.ReLU(), conv(inner, outer, 1), nn.BatchNorm2d(outer))


class Halve(nn.Module):
    """Halves the picture without losing pixels: even ones and odd ones are projected to half of the width each."""

    def __init__(self, inner, outer):
        super().__init__()
        self.pick = average(2, 1)
        self.even, self.odd = conv(inner, outer // 2, 1), conv(inner, outer - outer // 2, 1)
        self.norm = nn.BatchNorm2d(outer)

    def forward(self, x):
        x = torch.relu(x)
        shifted = pad(x, (0, 1, 0, 1))[:, :, 1:, 1:]
        return self.norm(torch.cat([self.even(self.pick(x)), self.odd(self.pick(shifted))], 1))


class Cell(nn.Module):
    """Figure 4 of Zoph et al. 2018: works on the last two cells' outputs, both brought to its width first.

    `before` and `last` are the widths of those outputs; `ratio` says how much larger the earlier picture is. A first
    cell has no earlier output (`before` is 0) and reads the last one, unprojected, in its place.
    """

    def __init__(self, before, last, width, ratio):
        super().__init__()
        self.enter = project(last, width)
        if ratio == 2:
            self.earlier = Halve(before, width)
        else:
            self.earlier = project(before, width) if before not in (0, width) else nn.Identity()
        self.make(width, width if before else last)  # the second: the width of what `earlier` yields

    def forward(self, before, last):
        return self.combine(self.earlier(before), self.enter(last))


class NormalCell(Cell):
    def make(self, width, _):
        self.last3, self.last5 = separable(width, width, 3), separable(width, width, 5)
        self.before3, self.before5 = separable(width, width, 3), separable(width, width, 5)
        self.before3b = separable(width, width, 3)
        self.average = average()

    def combine(self, before, last):
        return torch.cat([
            before,
            self.last5(last) + self.before3(before),
            self.before5(before) + self.before3b(before),
            self.average(last) + before,
            self.average(before) + self.average(before),
            self.last3(last) + last], 1)


class ReductionCell(Cell):
    def make(self, width, before):
        self.last5, self.before5 = separable(width, width, 5, 2), separable(before, width, 5, 2)
        self.before7, self.before7b = separable(before, width, 7, 2), separable(before, width, 7, 2)
        self.inner3 = separable(width, width, 3)
        self.largest, self.shrink, self.average = nn.MaxPool2d(3, 2, 1), average(2), average()

    def combine(self, before, last):
        first = self.last5(last) + self.before7(before)
        largest = self.largest(last)
        second = largest + self.before7b(before)
        third = self.shrink(last) + self.before5(before)
        return torch.cat([second, third, self.average(first) + second, self.inner3(first) + largest], 1)


class NasNet(nn.Module):
    """NASNet-A `repeats` @ 24 x `width`: two reductions end the stem, then three groups of normal cells."""

    def __init__(self, classes=1000, repeats=4, width=44, stem=32):
        super().__init__()
        self.stem = nn.Sequential(conv(3, stem, 3, 2, 0), nn.BatchNorm2d(stem))
        self.cells = nn.ModuleList([ReductionCell(0, stem, width // 4, 1),
                                    ReductionCell(stem, width, width // 2, 2)])
        before, last, ratio = width, 2 * width, 2  # each reduction joins four values, each normal cell six
        for group in range(3):
            now = width << group
            for _ in range(repeats):
                self.cells.append(NormalCell(before, last, now, ratio))
                before, last, ratio = last, 6 * now, 1
            if group < 2:
                self.cells.append(ReductionCell(before, last, 2 * now, 1))
                before, last, ratio = last, 8 * now, 2
        self.classify = nn.Sequential(nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(last, classes))

    def forward(self, picture):
        before = last = self.stem(picture)
        for cell in self.cells:
            before, last = last, cell(before, last)
        return self.classify(last)


def nets():
    return [
        Net("mobilenet_v1_75px", "mobilenet", lambda: mobilenet_v1(SIGNS), image(75),
            note="43 classes, width 1.0; with 1000 classes at 224 px it has 4231976 parameters and 568740352 "
                 "multiply-adds (Howard et al. 2017, table 4: 4.2 M and 569 M)"),
        Net("nasnet_mobile_75px", "nasnet", lambda: NasNet(SIGNS), image(75),
            note="43 classes, NASNet-A 4 @ 1056 without auxiliary head; with 1000 classes at 224 px it has "
                 "5289978 parameters and 563638816 multiply-adds (Zoph et al. 2018: 5.3 M and 564 M); the exporter "
                 "merges equal activations and poolings of a cell"),
    ]
