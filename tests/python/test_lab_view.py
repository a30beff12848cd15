"""The page of a lab that is up: what it says is what is sent, and it notices what happens."""

import json
import signal
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from browsing import needs_browser, open_page
from laboratory import lab, missing, start, up
from raddle.errors import LabError
from raddle.services.view import LiveLab

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

NAME = "live-page"
RATE_BPS = 20_000_000
SIZE = 1400


@pytest.fixture(scope="module")
def shown() -> Iterator[str]:
    """The address of the page of a lab of four hosts, in which h1 sends to h4."""
    words = ["--hosts", "4", "--hosts-per-tor", "2", "--offload", "sockets", "--rates", "1Gbps"]
    with up(NAME, *words), LiveLab(NAME) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.url
        server.shutdown()


def asked(url: str) -> Any:
    with urllib.request.urlopen(f"{url}api/lab", timeout=10) as answer:
        return json.load(answer)


def seen(browser: Any, selector: str, true: Callable[[str], bool], seconds: float = 20) -> str:
    """The text of an element once it is as it shall be."""
    deadline = time.monotonic() + seconds
    while True:
        text: str = browser.execute_script(
            "return document.querySelector(arguments[0])?.textContent ?? ''", selector
        )
        if true(text):
            return text
        assert time.monotonic() < deadline, f"{selector}: {text}"
        time.sleep(0.1)


def test_counters_are_what_was_sent(shown: str) -> None:
    before = asked(shown)
    count = 200
    words = ["ping", "-q", "-f", "-c", str(count), "-s", str(SIZE), "10.100.0.4"]
    with start("exec", "--name", NAME, "h1", "--", *words) as ping:
        out, error = ping.communicate(timeout=60)
    assert ping.returncode == 0, out + error
    after = asked(shown)

    def grown(name: str, interface: str, what: str) -> int:
        old, new = (next(n for n in told["nodes"] if n["name"] == name) for told in (before, after))
        more: int = new["interfaces"][interface][what] - old["interfaces"][interface][what]
        return more

    least = count * (SIZE + 28)
    for name, interface in [("h1", "e0"), ("tor1", "spine1"), ("spine1", "tor2"), ("tor2", "h4")]:
        assert least <= grown(name, interface, "sent") <= 1.1 * least, (name, interface)
        assert least <= grown(name, interface, "received") <= 1.1 * least, (name, interface)
    assert grown("h2", "e0", "sent") < least / 10


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_shows_who_sends(browser: Any, shown: str, width: int) -> None:
    interval = 8 * SIZE / RATE_BPS
    words = ["ping", "-q", "-i", f"{interval:.6f}", "-w", "60", "-s", str(SIZE), "10.100.0.4"]
    with start("exec", "--name", NAME, "h1", "--", *words) as ping:
        open_page(browser, f"{shown}#view=hosts&sort=-sent", width)
        row = "table[aria-label=Hosts] tbody tr"
        seen(browser, row, lambda text: text.startswith(("h1", "h4")) and "Mb/s" in text)
        browser.find_element("css selector", row).click()
        seen(browser, "#details", lambda text: "below tor" in text and "Mb/s" in text)
        for view in ("Fabric", "Switches", "Jobs"):
            browser.find_element("xpath", f"//nav/button[text()='{view}']").click()
            seen(browser, "nav [aria-current=page]", lambda text, view=view: text == view)  # type: ignore[misc]
        scroll = browser.execute_script(
            "const e = document.documentElement; return [e.scrollWidth, e.clientWidth]"
        )
        assert scroll[0] <= scroll[1]
        assert browser.get_log("browser") == []
        ping.send_signal(signal.SIGINT)


@needs_browser
@pytest.mark.browser
def test_the_page_notices_a_switch_that_ends(browser: Any, shown: str) -> None:
    open_page(browser, f"{shown}#view=switches&about=node%3Ator2")
    seen(browser, "#details", lambda text: "raddle-switch, sockets" in text)
    lab("switch", "tor2", "stop", "--name", NAME)
    seen(browser, "#details", lambda text: "it has ended" in text)
    lab("switch", "tor2", "start", "--name", NAME)
    seen(browser, "#details", lambda text: "raddle-switch, sockets" in text)
    assert browser.get_log("browser") == []


@needs_browser
@pytest.mark.browser
def test_the_page_says_that_the_lab_is_down(browser: Any) -> None:
    name = "live-gone"
    with up(name, "--hosts", "2"), LiveLab(name) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        open_page(browser, f"{server.url}#view=switches")
        seen(browser, "table[aria-label=Switches]", lambda text: "bridge" in text)
        lab("down", "--name", name, "-q")
        seen(browser, ".fault", lambda text: f"lab `{name}` is not up" in text)
        server.shutdown()


def test_a_lab_that_is_not_there_is_named() -> None:
    with pytest.raises(LabError, match="there is no lab `nowhere`"):
        LiveLab("nowhere")


def test_the_command_ends_by_ctrl_c() -> None:
    name = "live-command"
    with up(name, "--hosts", "2"), start("view", "--name", name, "--no-browser") as page:
        assert page.stdout is not None
        assert page.stdout.readline().startswith("http://127.0.0.1:")
        page.send_signal(signal.SIGINT)
        assert page.wait(20) == 0
