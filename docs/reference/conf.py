# SPDX-License-Identifier: Apache-2.0
"""Sphinx: the Python reference from the docstrings, and the guides of docs/ beside it. Built by scripts/docs."""

import horus

project = "libhorus"
author = "libhorus contributors"
version = release = horus.__version__
language = "en"

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_parser"]
default_role = "literal"  # docstrings have `names` in single backticks
html_theme = "alabaster"
html_theme_options = {"description": "Which GPUs, beside whom, at what slowdown?", "fixed_sidebar": True, "page_width": "72rem"}
html_copy_source = False
html_show_copyright = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autoclass_content = "both"
maximum_signature_line_length = 100

myst_heading_anchors = 4
# Guides link to sources, which are no pages.
suppress_warnings = ["myst.xref_missing", "myst.header"]


def _plain_stars(app, what, name, thing, options, lines):
    """`synergy-*`, DEMAND_* and *args are meant, neither emphasis nor references."""
    if what == "class" and "Fields:" in lines:  # each has an entry of its own below
        start = lines.index("Fields:")
        end = next((at for at in range(start + 1, len(lines)) if lines[at] and not lines[at].startswith(" ")), len(lines))
        del lines[start:end]
    lines[:] = [line.replace("_*", r"\_*").replace("*", r"\*") for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", _plain_stars, priority=1)  # before napoleon
