# SPDX-License-Identifier: Apache-2.0
"""Links within the built site that lead nowhere, of pages that Sphinx made. Usage: links.py HTML. Exit status 1 if any."""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """Where a page's links go, and what they may point at."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = set(), {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if attributes.get("id"):
            self.anchors.add(attributes["id"])
        if tag == "a" and attributes.get("href"):
            self.links.add(attributes["href"])


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    own = [path for path in sorted(root.rglob("*.html")) if path.relative_to(root).parts[0] != "c"]  # c: Doxygen's
    pages, wrong = {path: Page(path) for path in own}, []
    for path, page in pages.items():
        for link in sorted(page.links):
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                continue
            to = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
            if not to.is_file() or (to in pages and url.fragment and urllib.parse.unquote(url.fragment) not in pages[to].anchors):
                wrong.append(f"{path.relative_to(root)}: {link}")
    print(f"site: {len(pages)} pages, {len(wrong)} links lead nowhere", *wrong, sep="\n  ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
