# SPDX-License-Identifier: Apache-2.0
"""The report in headless Chromium: no console errors, filters change the numbers, narrow and wide, keyboard, axe-core.

Skipped, saying so, without chromium, chromedriver and selenium. axe.min.js comes with the PyPI package
axe-playwright-python, of which nothing else is used.
"""

import base64
import importlib.util
import os
import pathlib
import shutil

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not (CHROMIUM and DRIVER):
    pytest.skip("NOT TESTED in a browser: chromium or chromedriver is missing (apt: chromium chromium-driver)",
                allow_module_level=True)
webdriver = pytest.importorskip("selenium.webdriver", reason="NOT TESTED in a browser: selenium is missing (PyPI)")
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

from horus import report  # noqa: E402

WIDTHS = (1440, 390)
PATIENCE_S = 60  # with what the page does by itself; a busy machine is slow


@pytest.fixture(scope="module")
def page(results, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    report.write(results["paths"], path, gpus=results["gpus"])
    return path


def start(scheme):
    """A browser whose user prefers the scheme, at the first of the widths."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    driver.scheme = scheme
    resize(driver, WIDTHS[0])
    return driver


@pytest.fixture(scope="module", params=["light", "dark"])
def browser(page, request):
    driver = start(request.param)
    driver.get(page.as_uri())
    driver.execute_script("horusReport.drawAll()")
    yield driver
    driver.quit()


def resize(driver, width):
    """Also below the least width of a window."""
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500})


def screenshot(driver, name):
    """For people to look at, where they name a folder."""
    folder = os.environ.get("REPORT_SCREENSHOTS")
    if folder:
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})["data"]
        pathlib.Path(folder, name).write_bytes(base64.b64decode(shot))


def choose(driver, name, value):
    Select(driver.find_element("id", name)).select_by_value(value)


@pytest.fixture(autouse=True)
def no_filters(browser):
    for name, value in (("gpu", ""), ("job", ""), ("policy", "horus")):
        choose(browser, name, value)


def answers(driver):
    return [one.text for one in driver.find_elements("css selector", ".figure") if one.is_displayed()]


def job_row(driver):
    return [cell.text for cell in driver.find_elements("css selector", "#jobs tr:first-child td")]


def test_opens_without_console_errors_and_alone(browser):
    browser.execute_script("horusReport.drawAll()")
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert len(browser.find_elements("css selector", ".chart .main-svg")) >= 7


def test_names_of_jobs_run_no_script(browser):
    assert browser.execute_script("return document.querySelectorAll('img[src=x]').length") == 0
    shown = [element.text for element in browser.find_elements("css selector", "#job option")]
    assert any(text.startswith("</script><img") for text in shown)


def test_gpu_type_changes_answer_and_numbers(browser):
    assert answers(browser)[0] == "+15.0 % work" and job_row(browser)[0] == "6"
    choose(browser, "gpu", "k80")
    assert answers(browser)[0] == "Does not pay" and job_row(browser)[0] == "2"
    rows = [row.text for row in browser.find_elements("css selector", "section[aria-labelledby=h-bounds] tbody tr[data-gpu]") if row.is_displayed()]
    assert rows and all(row.startswith("k80") for row in rows)


def test_job_type_changes_the_numbers(browser):
    before = job_row(browser)
    choose(browser, "job", "lm")
    after = job_row(browser)
    assert (before[0], after[0]) == ("6", "3")
    assert (before[2], after[2]) == ("3.5 h", "3 h")  # means of 1..6 h, and of 1, 3, 5 h
    assert "3 of 6" not in before and browser.find_element("id", "shown").text.startswith("5 of 10 jobs")


def test_policy_changes_the_answer(browser):
    assert "mean JCT" in answers(browser)[1]
    choose(browser, "policy", "exclusive")
    assert answers(browser)[1] == "Baseline"


def test_filters_are_reached_and_changed_by_keyboard(browser):
    browser.execute_script("document.getElementById('workload').focus()")
    reached = []
    for _ in range(4):
        active = browser.switch_to.active_element
        reached.append(active.get_attribute("id"))
        active.send_keys(Keys.TAB)
    assert reached == ["workload", "policy", "gpu", "job"]
    assert browser.switch_to.active_element.get_attribute("aria-label") == "Gains by bound on slowdowns"  # tables scroll
    before = job_row(browser)
    browser.find_element("id", "gpu").send_keys(Keys.ARROW_DOWN)
    assert job_row(browser) != before


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_is_no_wider_than_the_screen(browser, width):
    resize(browser, width)
    WebDriverWait(browser, PATIENCE_S).until(lambda driver: driver.execute_script(
        "return [...document.querySelectorAll('.chart .main-svg')].every(chart => chart.getBoundingClientRect().right <= innerWidth)"))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    smallest = browser.execute_script("return Math.min(...[...document.querySelectorAll('p, td, th, label')].filter(e => e.offsetParent).map(e => parseFloat(getComputedStyle(e).fontSize)))")
    assert smallest >= 12
    screenshot(browser, f"{browser.scheme}-{width}.png")
    resize(browser, WIDTHS[0])


def check_axe(browser, width):
    """Contrast, names and roles."""
    package = importlib.util.find_spec("axe_playwright_python")
    if package is None:
        pytest.skip("NOT CHECKED: contrast and roles (axe-playwright-python is missing: bindings/python/requirements-alone.txt)")
    axe = pathlib.Path(package.submodule_search_locations[0], "axe.min.js")
    resize(browser, width)
    # A separate world, as the page's policy lets no other script run.
    frame = browser.execute_cdp_cmd("Page.getFrameTree", {})["frameTree"]["frame"]["id"]
    world = browser.execute_cdp_cmd("Page.createIsolatedWorld", {"frameId": frame})["executionContextId"]
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": axe.read_text("utf-8"), "contextId": world})
    run = "axe.run().then(r => JSON.stringify(r.violations.map(v => [v.id, v.impact, v.nodes.slice(0, 3).map(n => n.html.slice(0, 200))])))"
    found = browser.execute_cdp_cmd("Runtime.evaluate", {"expression": run, "contextId": world, "awaitPromise": True, "returnByValue": True})
    resize(browser, WIDTHS[0])
    assert found["result"]["value"] == "[]"


@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing(browser, width):
    check_axe(browser, width)


def test_the_first_screen_draws_what_sharing_gains(browser):
    for width in WIDTHS:
        resize(browser, width)
        first = browser.find_elements("css selector", ".gains .chart")
        assert [one.get_attribute("data-chart") for one in first] == ["bounds", "policies"]
        assert first[0].location["y"] + 300 < 900 and first[0].location["y"] < browser.find_element("id", "filters").location["y"]
    resize(browser, WIDTHS[0])
    bars = "return document.querySelector('.gains .chart').data[0].y"
    assert browser.execute_script(bars) == [2, 15, 30]
    choose(browser, "gpu", "k80")
    assert browser.execute_script(bars) == [0, 0, 4]


def test_the_first_screen_answers_and_charts_are_told_in_words(browser):
    shown = [row.text for row in browser.find_elements("css selector", ".at-bounds tbody tr") if row.is_displayed()]
    assert shown[:3] == ["1.25\u00d7 +2.0 %", "1.5\u00d7 +15.0 %", "no bound +30.0 %"]
    for chart in browser.find_elements("css selector", ".chart"):
        assert chart.get_attribute("role") == "img" and len(chart.get_attribute("aria-label")) > 20


def test_print_has_no_filters_and_light_colours(browser):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "light"}]})
    try:
        assert not browser.find_element("id", "filters").is_displayed()
        assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert browser.execute_script("return getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [{"name": "prefers-color-scheme", "value": browser.scheme}]})
