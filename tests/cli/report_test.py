# SPDX-License-Identifier: Apache-2.0
"""horus report and --html: one page that holds what shadow, place and potential found. Usage: see command.py."""

import base64
import hashlib
import json
import re

from command import ROOT, Files, main, run

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>"
CLUSTER = ROOT / "examples/cluster.yaml"
EXAMPLE = ("--cluster", CLUSTER, "--jobs", ROOT / "examples/jobs.yaml")
SHADOW = ("shadow", *EXAMPLE, "--log", ROOT / "examples/decisions.csv")


def held(page):
    """What the page holds."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1))


class Report(Files):
    def page(self, *args):
        path = self.folder / "page.html"
        code, out, err = run(*args, path)
        self.assertEqual((code, err), (0, ""))
        return path.read_text(encoding="utf-8")

    def test_the_page_of_a_command_is_the_report_of_its_json(self):
        price = ("--gpu-hour-price", "2.5")
        document = self.write("shadow.json", run(*SHADOW, "--json")[1])
        page = self.page("report", document, *price, "-o")
        self.assertEqual(page, self.page(*SHADOW, *price, "--html"))
        self.assertEqual(held(page), {"documents": [json.loads(document.read_text())], "gpu_hour_price": 2.5})

    def test_a_page_holds_several_documents_in_their_order(self):
        paths = [self.write(f"{i}.json", json.dumps({"schema": schema})) for i, schema in
                 enumerate(("horus-potential", "horus-shadow", "horus-placement"))]
        documents = held(self.page("report", *paths, "-o"))["documents"]
        self.assertEqual([one["schema"] for one in documents], ["horus-potential", "horus-shadow", "horus-placement"])

    def test_only_its_own_script_and_style_may_run_and_nothing_be_fetched(self):
        page = self.page("place", *EXAMPLE, "--html")
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page).group(1)
        self.assertIn("default-src 'none'", policy)
        for part in ("script", "style"):
            (text,) = re.findall(rf"<{part}>(.*?)</{part}>", page, re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            self.assertIn(f"{part}-src 'sha256-{digest}'", policy)
        self.assertIsNone(re.search(r"https?://|url\(|@import", page.replace(json.dumps(held(page)), "")))

    def test_no_name_ends_the_element_that_holds_it(self):
        jobs = self.write("jobs.yaml", "version: 1\njobs:\n  - {name: %s, demand: {any: {gpu_util_pct: 50, gpu_memory_gib: 1}}}\n" % json.dumps(HOSTILE))
        page = self.page("place", "--cluster", CLUSTER, "--jobs", jobs, "--html")
        self.assertEqual(held(page)["documents"][0]["decisions"][0]["job"], HOSTILE)
        self.assertEqual((page.count("<script"), page.count("</script>"), page.count("<img")), (2, 2, 0))

    def test_what_is_no_document_of_ours_is_said(self):
        ours = self.write("shadow.json", json.dumps({"schema": "horus-shadow"}))
        for content, found in (('{"schema": "horus-shadow"', "found no JSON"), ('{"of": {"schema": "horus-shadow"}}', "found other JSON"),
                               ("", "found an empty file")):
            other = self.write("other.json", content)
            code, out, err = run("report", ours, other, "-o", self.folder / "x.html")
            self.assertEqual((code, out, err.count("\n")), (2, "", 1))
            self.assertIn(f"{other}: expected what `horus shadow --json`", err)
            self.assertIn(found, err)
        code, _, err = run("report", self.folder / "missing.json", "-o", self.folder / "x.html")
        self.assertEqual(code, 2)
        self.assertIn("missing.json", err)

    def test_a_page_never_replaces_an_input(self):
        document = self.write("shadow.json", json.dumps({"schema": "horus-shadow"}))
        for args in (("report", document, "-o", document), (*SHADOW, "--html", ROOT / "examples/jobs.yaml")):
            code, _, err = run(*args)
            self.assertEqual(code, 2)
            self.assertIn("expected a file that no other option names", err)

    def test_a_price_is_no_less_than_nothing(self):
        for price in ("-1", "much"):
            code, _, err = run(*SHADOW, "--html", self.folder / "x.html", "--gpu-hour-price", price)
            self.assertEqual(code, 2)
            self.assertIn("--gpu-hour-price", err)


if __name__ == "__main__":
    main()
