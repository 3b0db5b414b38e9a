# SPDX-License-Identifier: Apache-2.0
"""Sphinx: the site of guides and references. Built by scripts/docs."""

import html
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
html_favicon = "_static/icon.svg"
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
        if SOURCES:
            return f"[{match[1]}]({SOURCES}/{path})"
        return f"`{path}`" if match[1].strip("`") in path else f"{match[1]} (`{path}`)"

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


def _table(match):
    """Numbers to the right; from three columns on a cell says its column, for phones (site.css)."""
    heads = [html.escape(html.unescape(re.sub("<[^>]*>", "", one)).strip()) for one in re.findall(r"<th\b[^>]*>(.*?)</th>", match[0], re.S)]
    rows = [re.findall(r"<td\b[^>]*>(.*?)</td>", row, re.S) for row in match[0].split("<tr")]
    columns = [[re.sub("<[^>]*>", "", row[at]).strip() for row in rows if len(row) > at] for at in range(len(heads))]
    figures = {at for at, cells in enumerate(columns) if at and any(cells) and all(re.fullmatch(r"[-+−±]?\.?\d[^A-Za-z]*(?:%|x|B|ms|µs|s|h)?|[-–—]?", cell) for cell in cells)}

    def row(text):
        at = iter(range(99))

        def cell(tag):
            here, kinds = next(at), []
            if tag[1] == "td" and not re.sub("<[^>]*>", "", tag[3]).strip() and "<span" not in tag[3]:
                kinds.append("empty")
            if not here and tag[1] == "td" and re.fullmatch(r"[\d., ]+", re.sub("<[^>]*>", "", tag[3]).strip()):
                kinds.append("bare")  # a number says nothing without its head
            if here in figures:
                kinds.append("n")
            label = f' data-label="{heads[here]}"' if tag[1] == "td" and len(heads) > 2 and here < len(heads) and heads[here] else ""
            return f'<{tag[1]} class="{" ".join(kinds)}"{label}>{tag[3]}</{tag[1]}>' if kinds or label else tag[0]

        return re.sub(r"<(td|th)\b([^>]*)>(.*?)</\1>", cell, text[0], flags=re.S)

    table = re.sub(r"<tr\b.*?</tr>", row, match[0], flags=re.S)
    kind = "" if len(heads) < 3 else "cards figures " if len(figures) == len(heads) - 1 else "cards "
    return table.replace('class="docutils', f'class="{kind}docutils', 1)


def _code(match):
    """An option of a command does not break at its hyphens."""
    return re.sub(r"(?<![^\s>])(--?[A-Za-z][\w-]*)(?![^<]*>)", r'<span class="option">\1</span>', match[0])


def _word(match):
    """A long word of code may break, but only after a mark that joins its parts."""
    if len(match[1]) < 20:
        return match[0]
    parts = re.findall(r".{7,}?(?:[_/.,:=|{}()]+(?=.{4})|$)|.+", html.unescape(match[1]))
    return "<wbr>".join(f'<span class="pre">{html.escape(part, quote=False)}</span>' for part in parts)


def _readable(app, page, template, context, doctree):
    if "body" in context:
        body = re.sub(r"<table\b.*?</table>", _table, context["body"], flags=re.S)
        body = re.sub(r"<pre>.*?</pre>", _code, body, flags=re.S)
        context["body"] = re.sub(r'<span class="pre">([^<]*)</span>', _word, body)
        # Wide tables can be moved by keyboard too.
        context["body"] = context["body"].replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
    if "furo_navigation_tree" in context:  # Sphinx leaves out the rank
        context["furo_navigation_tree"] = context["furo_navigation_tree"].replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app):
    app.connect("html-page-context", _readable, priority=900)  # after furo
    app.connect("source-read", _sources)
    app.connect("autodoc-process-docstring", _plain_stars, priority=1)  # before napoleon
