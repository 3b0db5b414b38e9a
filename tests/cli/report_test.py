# SPDX-License-Identifier: Apache-2.0
"""horus report and --html: one page that holds what shadow, place and potential found. Usage: see command.py."""

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
import unittest

from command import ROOT, Files, main, run

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>"
CLUSTER = ROOT / "examples/cluster.yaml"
EXAMPLE = ("--cluster", CLUSTER, "--jobs", ROOT / "examples/jobs.yaml")
SHADOW = ("shadow", *EXAMPLE, "--log", ROOT / "examples/decisions.csv")


CHROMIUM = shutil.which("chromium")


def held(page):
    """What the page holds."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1))


class Report(Files):
    def page(self, *args):
        path = self.folder / "page.html"
        code, out, err = run(*args, path)
        self.assertEqual((code, err), (0, ""))
        return path.read_text(encoding="utf-8")

    def shown(self, *documents, price=2.5):
        """What a browser shows of documents, as one line."""
        paths = [self.write(f"shown{i}.json", json.dumps(one)) for i, one in enumerate(documents)]
        self.page("report", *paths, "--gpu-hour-price", price, "-o")
        done = subprocess.run([CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom",
                               (self.folder / "page.html").as_uri()], capture_output=True, timeout=120, check=True)
        body = re.sub(r"<(script|noscript).*?</\1>", "", done.stdout.decode().split("<body", 1)[1], flags=re.DOTALL)
        return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", " ", body)))

    def shadow_of(self, **changes):
        return {**json.loads(run(*SHADOW, "--json")[1]), **changes}

    @staticmethod
    def potential_of(gpus_free, gain_pct, shared_rate):
        bound = {"slowdown_bound": 2, "exclusive_rate": 4, "shared_rate": shared_rate, "gain_pct": gain_pct, "pays": gain_pct > 5, "pairs": []}
        case = {"gpu": "t4", "gpus": 4, "pairs_run": 1, "verdict": "V.", "bounds": [bound]}
        return {"schema": "horus-potential", "notes": [], "jobs": 4, "jobs_of_requests_alone": 0, "gpus_free": gpus_free, "cases": [case]}

    @unittest.skipUnless(CHROMIUM, "NOT TESTED in a browser: chromium is missing")
    def test_a_chosen_job_tells_where_it_is_and_nothing_that_is_not(self):
        page = self.page("place", *EXAMPLE, "--html")
        press = "<script>document.querySelector('.job').click()</script>"  # which the page's policy would not let run
        path = self.write("pressed.html", re.sub("<meta http-equiv=[^>]*>", "", page).replace("</body>", press + "</body>"))
        done = subprocess.run([CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom", path.as_uri()],
                              capture_output=True, timeout=120, check=True)
        detail = re.search(r'<aside id="detail".*?</aside>', done.stdout.decode(), re.DOTALL).group(0)
        self.assertIn("Show on the map", detail)
        self.assertNotIn("null", detail)

    @unittest.skipUnless(CHROMIUM, "NOT TESTED in a browser: chromium is missing")
    def test_money_is_only_what_a_backlog_would_bring(self):
        busy = self.shown(self.potential_of(0, 50, 6))
        self.assertIn("Sharing could do the work of 2 more GPUs ", busy)
        self.assertIn("120 a day", busy)
        shared = self.potential_of(0, 50, 6)
        shared["cases"][0].update(today_rate=5)
        shared["cases"][0]["bounds"][0].update(gain_over_today_pct=20)
        self.assertIn("Sharing could do the work of 1 more GPU ", self.shown(shared))
        self.assertIn("GPUs' work more than as jobs share today", self.shown(shared))
        self.assertNotIn("a year", busy)  # a moment says nothing of it
        self.assertNotIn("endless", busy)
        for gpus_free in (3, None):
            idle = self.shown(self.potential_of(gpus_free, 50, 6))
            self.assertIn("Sharing could do the work of 2 more GPUs if work were endless", idle)
            self.assertNotIn("a day", idle)
        self.assertIn("Sharing gains nothing here", self.shown(self.potential_of(0, 2.2e-14, 4 * (1 + 2e-16))))
        whole = self.shadow_of(hours=48, releases=1, gpus=[one for one in self.shadow_of()["gpus"] if one["node"] == "a100"])
        self.assertIn("a day", self.shown(whole).split("GPU-hours of useful work lost a day")[1])
        for changes, title in (({"hours": 2}, "choices lost 0.27 GPU-hours in 2 hours"), ({"tenants": []}, "choices lost 0.27 GPU-hours in 2 days"),
                               ({"releases": 0}, "choices lose the work of 2.73 GPUs now")):  # a moment: jobs that ended are in no decision
            page = self.shown({**whole, **changes})
            self.assertIn(title, page)
            self.assertNotRegex(page, "a year|lost a day|GPU-hours? a day")

    @unittest.skipUnless(CHROMIUM, "NOT TESTED in a browser: chromium is missing")
    def test_a_plan_is_credited_with_what_it_placed_alone(self):
        code, text, _ = run("place", *EXAMPLE, "--json")
        found = json.loads(text)
        before = {**found, "decisions": [{**one, "effects": []} for one in found["decisions"]]}
        self.assertIn(" 0 GPUs' work by 0 jobs placed beside others", self.shown(before))
        joined = [one for one in found["decisions"] if any(not effect["is_new"] for effect in one["effects"])]
        gained = sum(one["work_added"] - one["work_lost"] for one in joined)
        self.assertIn(f"+{gained:.3g} GPUs' work by {len(joined)} jobs placed beside others", self.shown(found))
        light = [{**one, "work_added": 0.3, "work_lost": 0} for one in found["decisions"]]
        self.assertIn(f"+{0.3 * len(joined):.3g} GPUs' work by", self.shown({**found, "decisions": light}))

    @unittest.skipUnless(CHROMIUM, "NOT TESTED in a browser: chromium is missing")
    def test_gpus_that_take_no_jobs_are_not_among_the_usable(self):
        found = json.loads(run("place", *EXAMPLE, "--json")[1])
        self.assertIn("11 GPUs (9 usable) on 5 nodes", self.shown(found))
        self.assertNotIn("usable", self.shown({**found, "gpus": [{**one, "state": "up"} for one in found["gpus"]]}))
        self.assertRegex(run("place", *EXAMPLE)[1], r"GPUs in use +9 of 11 \(.*\), before 2; 9 usable\n")

    @unittest.skipUnless(CHROMIUM, "NOT TESTED in a browser: chromium is missing")
    def test_choices_that_exclude_each_other_are_no_moves(self):
        found = self.shadow_of()
        self.assertGreater([one["ours"] for one in found["most_costly"]].count("v100:1"), 1)
        page = self.shown(found)
        self.assertNotIn("Move it", page)
        self.assertIn("so these are no moves to make now", page)
        self.assertIn("\u00d7: takes so many times as long as alone", page)
        alone = [{**one, "slowdown": 1} for one in found["tenants"]]
        self.assertNotIn("takes so many times", self.shown({**found, "tenants": alone}))

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
                               ("", "found an empty file"), ("version: 1\njobs: []\n", "found no JSON")):
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
