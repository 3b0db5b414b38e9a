# SPDX-License-Identifier: Apache-2.0
"""Sphinx: the site of guides and references. Built by scripts/docs."""

import os
import pathlib
import re

import horus

DOCS = pathlib.Path(__file__).resolve().parent

project = "libhorus"
author = "libhorus contributors"
version = release = horus.__version__
language = "en"

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_parser"]
default_role = "literal"  # docstrings have `names` in single backticks
html_theme = "furo"  # light and dark, phones, search
html_static_path, html_css_files = ["_static"], ["site.css"]
html_title = f"libhorus {version}"
html_copy_source = False
html_show_copyright = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autoclass_content = "both"
maximum_signature_line_length = 100

myst_heading_anchors = 4
suppress_warnings = ["myst.header"]
# Guides link to sources, which are no pages: they lead to a forge (scripts/docs --sources URL), or are named.
SOURCES = os.environ.get("HORUS_SOURCES_URL", "")


def _sources(app, page, text):
    def elsewhere(match):
        path = f"{match[2]}{match[3] or ''}"
        return f"[{match[1]}]({SOURCES}/{path})" if SOURCES else f"{match[1]} (`{path}`)"

    text[0] = re.sub(r"\(\.\./examples/(notebooks/\w+)\.ipynb\)", r"(\1.md)", text[0]).replace("(../bench/results)", "(benchmarks.md)")  # pages.py
    text[0] = re.sub(r"\[([^]]+)\]\((?:\.\./)+([^)#]+)(#[^)]*)?\)", lambda match: match[0] if (DOCS / page).parent.joinpath(
        match[0].rpartition("(")[2].rstrip(")").partition("#")[0]).exists() else elsewhere(match), text[0])


def _plain_stars(app, what, name, thing, options, lines):
    """`synergy-*` and *args are meant, neither emphasis nor references."""
    if what == "class" and "Fields:" in lines:  # each has an entry of its own below
        start = lines.index("Fields:")
        end = next((at for at in range(start + 1, len(lines)) if lines[at] and not lines[at].startswith(" ")), len(lines))
        del lines[start:end]
    lines[:] = [line.replace("_*", r"\_*").replace("*", r"\*") for line in lines]


def setup(app):
    app.connect("source-read", _sources)
    app.connect("autodoc-process-docstring", _plain_stars, priority=1)  # before napoleon
