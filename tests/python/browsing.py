"""A page in Chromium: every view has data, no console error, no request, no sideways scroll.

What is wider than its place says so, and what follows a chart shows what the chart shows.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium or chromedriver is not installed"
)

READY = "return document.documentElement.dataset.ready"

SHOW_EVERY_VIEW = """
const done = arguments[arguments.length - 1];
(async () => {
  const bad = [];
  const width = () => document.documentElement.scrollWidth;
  for (const details of document.querySelectorAll("details")) details.open = true;
  await new Promise((r) => setTimeout(r, 60));
  for (const table of document.querySelectorAll(".table")) {
    const hint = table.previousElementSibling;
    const said = hint !== null && hint.matches(".scroll-hint") && hint.offsetParent !== null;
    const wider = table.scrollWidth > table.clientWidth + 1;
    const name = "table " + table.textContent.trim().slice(0, 20);
    if (wider && !(said && /more columns?: scroll sideways/.test(hint.textContent))) {
      bad.push(name + " scrolls sideways without a cue");
    }
    if (wider && table.tabIndex !== 0) bad.push(name + " does not scroll by keys");
    if (!wider && said) bad.push(name + " says that it scrolls and does not");
  }
  for (const figure of document.querySelectorAll("figure.chart")) {
    const buttons = [...figure.querySelectorAll(".views button")];
    for (const press of buttons.length ? buttons : [null]) {
      if (press) { press.click(); await new Promise((r) => setTimeout(r, 30)); }
      const plot = figure.querySelector(".plot");
      const name = figure.id + (press ? ": " + press.textContent : "");
      // calcdata is what plotly understood of the data: a point per drawn mark.
      const points = (plot.calcdata || []).flat();
      const full = points.some((p) => Number.isFinite(p.x) && Number.isFinite(p.y) || p.s > 0);
      if (!full) bad.push(name + " has no data");
      const marks = plot.querySelectorAll(".plot path, .points path, .bars path");
      const drawn = [...marks].some((m) => m.getBoundingClientRect().width > 2);
      if (!drawn) bad.push(name + " is empty");
      const follow = `[data-follows="${figure.id.replace("chart-", "")}"] > [data-view]`;
      const panels = [...document.querySelectorAll(follow)];
      const shown = panels.filter((p) => p.offsetParent !== null);
      const view = [...figure.querySelectorAll(".views [aria-pressed=true]")];
      const words = view.map((b) => b.textContent).join(", ");
      const other = shown.length !== 1 || shown[0].dataset.view !== words;
      if (panels.length && view.length && other) {
        bad.push(name + " has another view's table below");
      }
      if (width() > document.documentElement.clientWidth) bad.push(name + " scrolls sideways");
    }
  }
  return bad;
})().then(done, (error) => done(["test script: " + error]));
"""


def show_in_browser(browser: Any, file: Path, width: int, theme: str) -> None:
    """Open `file` at `width` pixels and fail if anything about it is wrong."""
    open_in_browser(browser, file, width, theme)
    script = "const e = document.documentElement; return [e.scrollWidth, e.clientWidth, innerWidth]"
    scroll, client, inner = browser.execute_script(script)
    assert scroll <= client
    assert inner == width
    assert browser.execute_async_script(SHOW_EVERY_VIEW) == []
    assert browser.get_log("browser") == []
    asked = [
        json.loads(line["message"])["message"]["params"]["request"]["url"]
        for line in browser.get_log("performance")
        if '"Network.requestWillBeSent"' in line["message"]
    ]
    assert {url.partition(":")[0] for url in asked} <= {"file", "data"}


def open_in_browser(browser: Any, file: Path, width: int, theme: str) -> None:
    """Open `file` at `width` pixels and wait until its charts are drawn."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": theme}]},
    )
    browser.get_log("performance")
    browser.get(file.as_uri())
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 60).until(
        lambda d: d.execute_script("return document.documentElement.dataset.ready === 'yes'")
    )


def open_page(browser: Any, url: str, width: int = 1280, theme: str = "light") -> None:
    """Open the explorer and wait until it shows what it is about."""
    from selenium.webdriver.support.ui import WebDriverWait

    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": theme}]},
    )
    browser.get_log("browser")
    browser.get("about:blank")
    browser.get(url)
    WebDriverWait(browser, 30).until(lambda driver: driver.execute_script(READY) == "yes")
