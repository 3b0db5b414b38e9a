# SPDX-License-Identifier: Apache-2.0
"""The page of horus shadow, place and potential --html in headless Chromium: clicks, keyboard, price, phone, no network.

Needs the command: HORUS_COMMAND; skipped without, and as browser_test.py beside it.
"""

import os
import pathlib
import subprocess

import pytest
from browser_test import WIDTHS, check_axe, resize, screenshot, start
from selenium.webdriver.common.keys import Keys

HORUS = os.environ.get("HORUS_COMMAND")
if not HORUS:
    pytest.skip("the horus command is not built (HORUS_COMMAND names it)", allow_module_level=True)
EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"
INPUTS = ("--cluster", EXAMPLES / "cluster.yaml", "--jobs", EXAMPLES / "jobs.yaml")
COMMANDS = {"shadow": ("shadow", *INPUTS, "--log", EXAMPLES / "decisions.csv"), "place": ("place", *INPUTS), "potential": ("potential", *INPUTS)}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, command in COMMANDS.items():
        subprocess.run([HORUS, *command, "--html", folder / f"{name}.html"], check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture(scope="module", params=["light", "dark"])
def driver(request):
    driver = start(request.param)
    yield driver
    driver.quit()


@pytest.fixture
def shadow(driver, pages):
    driver.get((pages / "shadow.html").as_uri())
    return driver


def gpus(driver, selector=""):
    return [one.get_attribute("data-gpu") for one in driver.find_elements("css selector", f"[data-gpu]{selector}")]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_page_stands_alone_and_fits_the_screen(driver, pages, name):
    for width in WIDTHS:
        resize(driver, width)
        driver.get((pages / f"{name}.html").as_uri())
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        screenshot(driver, f"{name}-{driver.scheme}-{width}.png")
        check_axe(driver, width)
    resize(driver, WIDTHS[0])
    assert driver.find_element("tag name", "h1").text and not driver.find_elements("css selector", "main > section > .bad")
    assert [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_a_costly_choice_shows_both_places_on_the_map(shadow):
    shadow.find_element("css selector", "td [data-job=resnet50]").click()
    assert (gpus(shadow, ".theirs"), gpus(shadow, ".ours")) == (["a100:0"], ["v100:1"])
    detail = shadow.find_element("id", "detail")
    assert "a100 gpu 0" in detail.text and "Better: v100 gpu 1" in detail.text
    detail.find_element("css selector", ".more").click()
    top = shadow.find_element("css selector", ".theirs").rect["y"] - shadow.execute_script("return scrollY")
    assert 0 <= top < 900
    detail.find_element("css selector", "[aria-label=Close]").click()
    assert not detail.is_displayed() and gpus(shadow, ".theirs") == []


def test_the_map_has_a_row_a_gpu_and_is_searched_and_filtered(shadow):
    assert len(gpus(shadow)) == 11
    shadow.find_element("css selector", "[data-kind=Shared]").click()
    assert gpus(shadow) == ["a100:0", "a100:1", "mig:1"]
    shadow.find_element("css selector", "[type=search]").send_keys("DCGAN")
    assert gpus(shadow) == ["a100:1"]


def test_all_is_reached_by_keyboard(shadow):
    reached = set()
    for _ in range(60):
        shadow.switch_to.active_element.send_keys(Keys.TAB)
        active = shadow.switch_to.active_element
        reached.add(active.get_attribute("data-job") or active.get_attribute("data-kind") or active.get_attribute("type"))
        if active.get_attribute("data-job") == "unet":
            active.send_keys(Keys.ENTER)
            break
    assert {"number", "search", "All", "resnet50", "unet"} <= reached
    assert shadow.find_element("css selector", "#detail h2").text == "unet"
    shadow.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not shadow.find_element("id", "detail").is_displayed()


def test_no_figure_rests_on_requests_alone(driver, tmp_path):
    (tmp_path / "cluster.yaml").write_text("version: 1\nnodes:\n  - {name: n, cpu_cores: 8, memory_gib: 64, gpus: [{type: t4, count: 2}]}\n")
    (tmp_path / "jobs.yaml").write_text("version: 1\njobs:\n" + "".join(
        f"  - {{name: {job}, gpu_milli: 500, demand: {{any: {{gpu_util_pct: 50, gpu_memory_gib: 4}}}}}}\n" for job in "ab"))
    (tmp_path / "log.csv").write_text("time_s,event,job,node,devices\n0,place,a,n,0\n1,place,b,n,0\n")
    subprocess.run([HORUS, "shadow", "--cluster", tmp_path / "cluster.yaml", "--jobs", tmp_path / "jobs.yaml", "--log", tmp_path / "log.csv",
                    "--html", tmp_path / "page.html"], check=True, stdout=subprocess.DEVNULL)
    driver.get((tmp_path / "page.html").as_uri())
    assert driver.find_element("tag name", "h1").text.startswith("Nothing can be said yet")
    assert driver.find_elements("css selector", ".figure") == [] and gpus(driver) == ["n:0", "n:1"]


def test_a_price_turns_gpu_hours_into_money(shadow):
    lost = float(shadow.find_element("css selector", ".tile .figure").text)
    assert "Money" not in [one.text for one in shadow.find_elements("css selector", "th") if one.is_displayed()]
    shadow.find_element("css selector", ".price").send_keys("2")
    assert float(shadow.find_elements("css selector", ".tile .figure")[1].text.split()[0]) == pytest.approx(2 * lost, rel=0.01)
    assert "Money" in [one.text for one in shadow.find_elements("css selector", "th") if one.is_displayed()]
