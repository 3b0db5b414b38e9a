# SPDX-License-Identifier: Apache-2.0
"""Colours: told apart in greyscale and without colour vision, by figures and not by eye."""

import itertools

import numpy as np
import pytest

from horus.plot import style

# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])
WHITE = np.array([0.95047, 1.0, 1.08883])
LEAST_STEP_OF_LIGHTNESS = 9.0  # L*; about 2.3 is the least that is noticed side by side
LEAST_DISTANCE = 15.0  # CIE76 between any two


def lab(rgb):
    """Linear RGB to CIE L*a*b* (D65)."""
    t = XYZ @ np.clip(rgb, 0, 1) / WHITE
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def linear(colour):
    value = np.array([int(colour[i:i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("vision", VISION)
def test_any_two_colours_are_told_apart(vision):
    seen = [lab(np.asarray(VISION[vision]) @ linear(colour)) for colour in style.PALETTE]
    for a, b in itertools.combinations(range(len(seen)), 2):
        assert np.linalg.norm(seen[a] - seen[b]) >= LEAST_DISTANCE, (vision, style.PALETTE[a], style.PALETTE[b])


def test_lightness_keeps_the_order_in_greyscale():
    lightness = [lab(linear(colour))[0] for colour in style.PALETTE]
    assert np.diff(lightness).min() >= LEAST_STEP_OF_LIGHTNESS, lightness


def test_two_of_a_colour_differ_in_line_and_hatch():
    for first in range(len(style.PALETTE)):
        second = first + len(style.PALETTE)
        assert style.look(first)["linestyle"] != style.look(second)["linestyle"]
        assert style.fill(first)["hatch"] != style.fill(second)["hatch"]


def test_the_colour_scale_of_matrices_rises_in_lightness():
    import matplotlib

    scale = matplotlib.colormaps[style.SEQUENTIAL]
    lightness = [lab(linear(matplotlib.colors.to_hex(scale(x))))[0] for x in np.linspace(0, 1, 32)]
    assert np.diff(lightness).min() > 0
