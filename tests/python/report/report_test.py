# SPDX-License-Identifier: Apache-2.0
"""The report without a browser: figures by hand-computed cases, errors that name files, names that stay text."""

import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys

import made_up_results as made
import pytest

from horus import report
from horus.report import answers, inputs, jobs, parts
from horus.report.__main__ import main


@pytest.fixture(scope="module")
def html(results, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    report.write(results["paths"], path, gpus=results["gpus"], command="horus report <b>")
    return path.read_text("utf-8")


def comparisons(tmp_path, sizes, load=""):
    paths, gpus = [], {}
    for count, jct in sizes.items():
        folder = tmp_path / f"at{count}"
        made.write_comparison(folder, *made.comparison(jct, load))
        paths.append(str(folder))
        gpus[str(folder)] = count
    return inputs.read(paths, gpus).comparisons


# Figures


@pytest.mark.parametrize(("slowdown", "low", "high"), [(1.1, None, 3.0), (1.25, 3.0, 3.0), (1.3, 3.0, 20.0), (9.0, 20.0, 40.0)])
def test_gain_at_a_bound_between_lies_between_the_gains(slowdown, low, high):
    assert answers.gain_between(made.potential()["cases"][0]["bounds"], slowdown) == (low, high)


def test_quantiles_are_of_the_slower_side_of_each_pair():
    pairs = {("a", "b"): 1.1, ("b", "a"): 1.4, ("a", "a"): 1.2}
    found = answers.quantiles(made.potential()["cases"][0], pairs)
    assert [one.slowdown for one in found] == [1.2, 1.2, 1.2, 1.4, 1.4]


def test_gpus_saved_are_interpolated_seed_by_seed(tmp_path):
    # Targets 90 and 80 of exclusive on 16 GPUs; horus goes from 50 on 16 to 100 on 8: met at 9.6 and 11.2 GPUs.
    small = {"exclusive": [400.0, 420.0], "horus": [100.0, 100.0]}
    large = {"exclusive": [90.0, 80.0], "horus": [50.0, 50.0]}
    saved = answers.gpus_saved(comparisons(tmp_path, {8: small, 16: large}), "w", "horus")
    assert saved.gpus == pytest.approx((6.4 + 4.8) / 2)
    assert (saved.low, saved.high) == pytest.approx((5.6 - 12.706 * 0.8, 5.6 + 12.706 * 0.8))  # sd 1.131 / sqrt(2) = 0.8


def test_no_more_gpus_are_saved_than_the_cluster_has(tmp_path):
    # Met at 16 and at 8.2 of 16 GPUs: the interval of two seeds would end far beyond 16.
    small = {"exclusive": [400.0, 400.0], "horus": [100.0, 100.0]}
    large = {"exclusive": [50.0, 99.0], "horus": [50.0, 50.0]}
    saved = answers.gpus_saved(comparisons(tmp_path, {8: small, 16: large}), "w", "horus")
    assert saved.high == 16 and saved.low < -16


def test_a_cluster_that_is_never_too_small_saves_at_least_the_difference(tmp_path):
    same = {"exclusive": [90.0, 90.0], "horus": [50.0, 50.0]}
    saved = answers.gpus_saved(comparisons(tmp_path, {8: same, 16: same}), "w", "horus")
    assert (saved.gpus, saved.at_least, saved.low) == (8, True, None)


def test_a_policy_that_is_slower_on_all_gpus_saves_none(tmp_path):
    slow = {"exclusive": [90.0, 90.0], "horus": [91.0, 50.0]}
    saved = answers.gpus_saved(comparisons(tmp_path, {8: slow, 16: slow}), "w", "horus")
    assert (saved.short, saved.gpus) == (1, None)


@pytest.mark.parametrize(("load", "says"), [("load: 800/1000\n", "stretched to a load"), ("", "")])
def test_sizes_of_stretched_arrivals_are_not_compared(tmp_path, load, says):
    same = {"exclusive": [90.0, 90.0], "horus": [50.0, 50.0]}
    reason = answers.not_comparable(comparisons(tmp_path, {8: same, 16: same}, load), "w")
    assert says in reason and bool(says) == bool(reason)


def test_one_size_tells_what_is_needed(tmp_path):
    found = parts.sizes_of(comparisons(tmp_path, {8: {"exclusive": [9.0, 9.0], "horus": [5.0, 5.0]}}))
    assert not found["saved"] and "at least two different sizes" in found["reasons"][0]


def test_intervals_are_in_per_cent_of_the_baseline():
    values = {"difference": -20, "difference_low": -30, "difference_high": None}
    assert answers.change("jct_mean_s", values, 200) == (-10, -15, None)
    assert answers.change("jct_mean_s", values, 0) is None


def test_intervals_end_where_the_metric_does():
    values = {"difference": -50, "difference_low": -300, "difference_high": 200}
    assert answers.change("jct_mean_s", values, 100) == (-50, -100, 200)
    assert answers.change("gap_closed", values, 100) == (-50, -300, 200)


def test_nothing_changes_by_per_cent_of_a_baseline_of_zero():
    for base in (0.0, 1e-17, None):
        assert answers.change("work_rate", {"difference": 0.5, "difference_low": 0.25, "difference_high": 0.75}, base) is None


def test_student_narrows_to_the_normal():
    assert answers.student_95(1) == 12.706 and answers.student_95(31) == 1.96 and math.isclose(answers.student_95(9), 2.262)


# The page


def test_answers_bounds_policies_and_sources_are_on_the_page(html):
    text = re.sub(r"<[^>]+>", " ", html.replace("\u00a0", " "))
    for part in ("+15.0 % work", "\u221241.2 % mean JCT", "5.6 of 16 GPUs", "abc123", "horus compare grid.yaml", "horus report &lt;b&gt;"):
        assert part in text, part


def test_what_sharing_gains_is_drawn_before_anything_is_told(html):
    first = html.index('data-chart="bounds"'), html.index('data-chart="policies"')
    assert max(first) < min(html.index("<form"), html.index('class="figure"'), html.index("<table"))


def test_an_interval_around_zero_says_so_and_ends_at_minus_100(tmp_path):
    document, texts = made.comparison({"exclusive": [9.0, 9.0], "horus": [5.0, 5.0]})  # -4 s, from -14 s to +6 s
    made.write_comparison(tmp_path / "wide", document, texts)
    report.write(tmp_path / "wide", tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text("utf-8").replace("\u00a0", " ")
    assert "95 % interval \u2212100.0 to +66.7 %" in text and "Not told apart from zero." in text
    assert "\u2212155" not in text


def test_names_of_jobs_are_text_everywhere(html):
    assert "<img" not in html.split("<script>")[0]
    assert html.split('id="data">')[1].split("</script>")[0].count("<") == 0
    json.loads(html.split('id="data">')[1].split("</script>")[0])


def test_nothing_is_fetched(html):
    assert "default-src 'none'" in html
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=", html.split("<script>")[0])


def test_the_same_files_give_the_same_page(results, tmp_path):
    for name in ("a", "b"):
        report.write(results["paths"], tmp_path / name, gpus=results["gpus"], command="x")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_size_does_not_grow_with_jobs(tmp_path):
    sizes = []
    for jobs in (2_000, 20_000):
        made.write_timeline(tmp_path, f"t{jobs}", jobs=jobs)
        sizes.append(report.write(tmp_path / f"t{jobs}.csv", tmp_path / "out.html"))
    assert sizes[1] - sizes[0] < 20_000


def test_one_answer_alone_makes_a_page_that_says_what_else_it_takes(results, tmp_path):
    for path in results["paths"][:2] + results["paths"][3:4]:
        report.write(path, tmp_path / "one.html", gpus={k: v for k, v in results["gpus"].items() if k == path})
        assert 'class="need"' in (tmp_path / "one.html").read_text("utf-8")


def test_command_writes_the_file_and_tells_its_size(results, tmp_path, capsys):
    sizes = [f"--gpus={folder}={count}" for folder, count in results["gpus"].items()]
    assert main([*results["paths"], "-o", str(tmp_path / "r.html"), *sizes, "--policy", "exclusive"]) == 0
    assert "MB" in capsys.readouterr().out


# What newer versions of the commands tell


def newer(folder):
    """Results that say all that once had to be told by hand."""
    (folder / "p.json").write_text(json.dumps(made.told(made.potential(), "horus potential --bound 1.5", {"v100": 12, "k80": 4}, quantiles=True)))
    for count, jct in ((8, {"exclusive": [400.0, 420.0], "horus": [100.0, 100.0]}), (16, {"exclusive": [90.0, 80.0], "horus": [50.0, 50.0]})):
        document, texts = made.comparison(jct)
        made.write_comparison(folder / f"at{count}", {**document, "cluster": {"gpus": {"v100": count - 4, "k80": 4}}}, texts)
    made.write_timeline(folder)
    nodes = [{"name": "n0", "gpus": {"v100": 2}}, {"name": "n1", "gpus": {"k80": 2}}, {"name": "n2", "gpus": {"v100": 8}}]
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(made.told(run, "horus simulate 'my grid.yaml'", {"v100": 10, "k80": 2}, nodes=nodes)))
    return [str(folder / name) for name in ("p.json", "at8", "at16", "run.csv")]


def test_nothing_need_be_told_by_hand(tmp_path):
    report.write(newer(tmp_path), tmp_path / "r.html")
    text = re.sub(r"<[^>]+>", " ", (tmp_path / "r.html").read_text("utf-8").replace("\u00a0", " "))
    for part in ("16 GPUs: 12 v100, 4 k80", "5.6 of 16 GPUs", "horus potential --bound 1.5", "horus simulate &#39;my grid.yaml&#39;",
                 "0123456789ab-dirty", "1.31× 50 % of pairs +12.5 %", "12.5"):
        assert part in re.sub(r"\s+", " ", text), part
    assert "at most" not in text.split("By bound on slowdowns")[1].split("Pairs that carry")[0]


def test_gpus_of_the_cluster_that_nobody_used_count(tmp_path):
    runs = jobs.read_runs(inputs.read(newer(tmp_path)[3:], {}))
    usage = runs[0]["usage"]
    assert (usage[""]["gpus"], usage["v100"]["gpus"], usage["k80"]["gpus"]) == (12, 10, 2)
    assert runs[0]["gpu_types"] == ["k80", "v100"]


def test_files_by_hand_go_before_what_the_run_tells(tmp_path):
    paths = newer(tmp_path)[3:]
    (tmp_path / "nodes.csv").write_text("node,gpu_type\nn0,mine\n")
    assert "mine" in jobs.read_runs(inputs.read([*paths, str(tmp_path / "nodes.csv")], {}))[0]["gpu_types"]


# One page, one cluster


def other_cluster(folder, what):
    """One more result, of another cluster than those of `newer`."""
    if what == "comparison":
        document, texts = made.comparison({"exclusive": [400.0, 420.0], "horus": [100.0, 100.0]})
        made.write_comparison(folder / "other", {**document, "cluster": {"gpus": {"t4": 16}}}, texts)
        return str(folder / "other")
    if what == "potential":
        (folder / "other.json").write_text(json.dumps(made.told(made.potential(), "horus potential", {"v100": 6, "k80": 2})))
        return str(folder / "other.json")
    made.write_timeline(folder, "other")
    run = json.loads((folder / "other.json").read_text())
    gpus = {"v100": 5, "k80": 2} if what == "smaller run" else {"t4": 12}
    (folder / "other.json").write_text(json.dumps(made.told(run, "horus simulate", gpus)))
    return str(folder / "other.csv")


@pytest.mark.parametrize(("what", "beside", "says"), [
    ("comparison", "at8", "other: expected GPUs of the same types as {}/at8 (4 v100, 4 k80), found 16 t4: make a report of each cluster"),
    ("potential", "p.json", "other.json: expected answers for one cluster as {}/p.json (12 v100, 4 k80), found 6 v100, 2 k80"),
    ("smaller run", "run.csv", "other.csv: expected runs on one cluster as {}/run.csv (10 v100, 2 k80), found 5 v100, 2 k80"),
    ("run", "at8", "other.csv: expected GPUs of the same types as {}/at8 (4 v100, 4 k80), found 12 t4"),
    ("comparison", "p.json", "other: expected GPUs of the same types as {}/p.json (12 v100, 4 k80), found 16 t4")])
def test_results_of_another_cluster_are_refused(tmp_path, what, beside, says):
    newer(tmp_path)
    with pytest.raises(report.ReportError, match=re.escape(says.format(tmp_path))):
        report.write([str(tmp_path / beside), other_cluster(tmp_path, what)], tmp_path / "r.html")


def test_files_of_speeds_may_call_a_type_otherwise(tmp_path):
    newer(tmp_path)
    (tmp_path / "p.json").write_text(json.dumps(made.told(made.potential(), "horus potential", {"Tesla V100-SXM2-16GB": 16})))
    report.write([str(tmp_path / "p.json"), str(tmp_path / "at8")], tmp_path / "r.html")


# Errors


def lack(document, key):
    return {name: value for name, value in document.items() if name != key}


@pytest.mark.parametrize(("text", "says"), [
    ("{", "as JSON"), ('{"a": 1}', "expected 'schema', found a"), ('{"schema": "x", "version": 1}', "schema: expected one of"),
    ('{"schema": "horus-potential", "version": 2}', "version: expected 1, found 2"),
    (json.dumps(lack(made.potential(), "cases")), "expected 'cases', found schema"),
    (json.dumps({**made.potential(), "cases": []}), "cases: expected a list with at least one"),
    ("a,b\n1,2\n", "line 1: expected a timeline"), ("gpu,victim,other,slowdown\nk,a,b,fast\n", "line 2: slowdown: expected a number, found 'fast'"),
    ("time_us,event,job,node,gpus\n", "what horus simulate --json says"),
    (json.dumps({**made.potential(), "cases": 3}), "cases: expected a list"),
    (json.dumps({**made.potential(), "cases": [3]}), "expected an object with 'gpu', found int"),
    (json.dumps({**made.potential(), "cases": [{**made.potential()["cases"][0], "bounds": [{**made.bound(1.5, 1.0, 1), "gain_pct": "much"}]}]}), "expected the layout"),
    (json.dumps({**made.potential(), "cluster": [1]}), "cluster: expected gpus by type, found [1]"),
    (json.dumps(made.potential())[:-30], "as JSON, found"),
    ("node,gpu_type\nn0\n", "line 2: expected 2 fields"), ("id,profile\n1,lm\n", "tables that go with such alone"),
])
def test_wrong_files_are_named_with_what_was_expected(tmp_path, text, says):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    (tmp_path / "out.html").write_text("before")
    with pytest.raises(report.ReportError) as caught:
        report.write([path], tmp_path / "out.html")
    assert says in str(caught.value) and "bad." in str(caught.value)
    assert (tmp_path / "out.html").read_text() == "before" and sorted(os.listdir(tmp_path)) == ["bad.csv", "out.html"]


def test_a_cut_timeline_is_told_with_its_line(tmp_path):
    made.write_timeline(tmp_path)
    path = tmp_path / "run.csv"
    path.write_text(path.read_text()[:-3])
    with pytest.raises(report.ReportError, match=r"run.csv: line 19: expected 5 fields, found 4"):
        report.write([path], tmp_path / "out.html")


@pytest.mark.parametrize("key", ["summary", "runs", "metrics", "seeds"])
def test_a_comparison_without_results_is_told(results, tmp_path, key):
    document, texts = made.comparison({"exclusive": [9.0, 9.0]})
    made.write_comparison(tmp_path / "empty", {**document, key: []}, texts)
    with pytest.raises(report.ReportError, match=f"results.json: {key}: expected a list with at least one"):
        report.write([tmp_path / "empty"], tmp_path / "out.html")


def test_a_place_that_cannot_be_written_is_told_before_anything_is_read(results, tmp_path, capsys):
    for path in (tmp_path / "no" / "such" / "r.html", pathlib.Path("/proc/r.html")):
        assert main([results["paths"][0] + ".missing", "-o", str(path)]) == 2
        assert f"horus: {path}: cannot write: " in capsys.readouterr().err
    (tmp_path / "folder").mkdir()
    assert main([results["paths"][0], "-o", str(tmp_path / "folder")]) == 2
    assert "folder: cannot write: " in capsys.readouterr().err and os.listdir(tmp_path) == ["folder"]


def test_it_runs_as_a_module_away_from_the_source(results, tmp_path):
    done = subprocess.run([sys.executable, "-m", "horus.report", results["paths"][0], "-o", "r.html"], cwd=tmp_path,
                          capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert (done.returncode, done.stderr) == (0, "") and (tmp_path / "r.html").stat().st_size > 1_000_000


@pytest.mark.parametrize("missing", ["results.json", "machine.json"])
def test_a_folder_without_its_files_names_them(results, tmp_path, missing):
    folder = tmp_path / "cut"
    shutil.copytree(results["folder"] / "small", folder)
    (folder / missing).unlink()
    with pytest.raises(report.ReportError, match=missing):
        report.write([folder], tmp_path / "out.html")


def test_sizes_need_their_runs(results, tmp_path):
    for name in ("small", "large"):
        shutil.copytree(results["folder"] / name, tmp_path / name)
    shutil.rmtree(tmp_path / "large" / "runs")
    with pytest.raises(report.ReportError, match="large.*runs.*expected a finished run"):
        report.write([tmp_path / "small", tmp_path / "large"], tmp_path / "o", gpus={str(tmp_path / "small"): 8, str(tmp_path / "large"): 16})


@pytest.mark.parametrize("options", [["--gpus", "x"], ["--gpus", "nowhere=3"], ["--policy", "nobody"], ["--plotly-js", __file__]])
def test_wrong_options_end_with_2_and_write_nothing(results, tmp_path, capsys, options):
    assert main([results["paths"][1], "-o", str(tmp_path / "r.html"), *options]) == 2
    assert "expected" in capsys.readouterr().err and not (tmp_path / "r.html").exists()
