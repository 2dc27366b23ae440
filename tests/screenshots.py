"""`make screenshots`: the README's pictures, anew, from a demo of its own."""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from config.children import ROOT
from tests.blackbox.agent import Agent
from tests.browsing import CHROMIUM_FLAGS, PHONE, find_chromium, log_in, open_case
from tests.demo import Demo, start_demo, stop_demo

PICTURES = ROOT / "docs" / "pictures"
LARGEST = 200_000
CASE = "demo-order-1005"
# What ends up with people: five of the demo's own cases, and these (lost answers above the limit, and approvals).
LOST = (("order-4812", "640.00"), ("order-4977", "1180.50"), ("order-5120", "742.00"), ("order-5133", "2305.90"))
HELD = (("order-4790", "15200.00"), ("order-5068", "11050.00"))
CASES = 5 + len(LOST) + len(HELD)
WAIT_S = 60
LAPTOP = {"width": 1280, "height": 800}
LIST = {"width": 1280, "height": 640}


def main() -> None:
    chromium = find_chromium()
    if chromium is None:
        sys.exit("Pictures need a browser: install chromium.")
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="landed-pictures-") as folder:
        demo = start_demo(Path(folder))
        try:
            with sync_playwright() as started:
                browser = started.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
                take_all(browser, demo)
                browser.close()
        finally:
            stop_demo(demo.facts["pid"])
    too_large = [one.name for one in PICTURES.glob("*.png") if one.stat().st_size > LARGEST]
    if too_large:
        sys.exit(f"Larger than {LARGEST} bytes: {', '.join(too_large)}")


def take_all(browser: Any, demo: Demo) -> None:
    propose(Agent(demo))
    rita, ravi = sit_down(browser, demo), sit_down(browser, demo, number=1)
    wait_for_cases(rita)
    press(ravi, "order-4812", "The customer waits")
    press(ravi, "order-5120", "Take this case")
    rita.set_viewport_size(LIST)
    rita.goto("/?tab=all")
    take(rita, "queue")
    open_case(rita, CASE)
    rita.set_viewport_size(LAPTOP)
    take(rita, "case")
    rita.emulate_media(color_scheme="dark")
    take(rita, "dark")
    rita.emulate_media(color_scheme="light")
    rita.set_viewport_size(PHONE)
    take(rita, "phone")


def propose(agent: Agent) -> None:
    for order, amount in LOST:
        agent.order_fault(order, "lose_response")
        agent.propose(order, amount)
    for order, amount in HELD:
        agent.propose(order, amount)


def sit_down(browser: Any, demo: Demo, *, number: int = 0) -> Any:
    page = browser.new_context(
        base_url=demo.base_url, viewport=LAPTOP, color_scheme="light", timezone_id="UTC", reduced_motion="reduce"
    ).new_page()
    reviewer = demo.login("reviewer", number)
    log_in(page, reviewer["username"], reviewer["password"])
    return page


def press(page: Any, order: str, button: str) -> None:
    open_case(page, order, tab="all")
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.get_by_role("button", name=button, exact=True).click()
    page.wait_for_load_state("networkidle")


def wait_for_cases(page: Any) -> None:
    """What the demo proposed has been sent, looked for, and found to need a person."""
    until = time.monotonic() + WAIT_S
    while page.locator("#main tbody tr").count() < CASES and time.monotonic() < until:
        time.sleep(1)
        page.goto("/?tab=all")


def take(page: Any, name: str) -> None:
    page.wait_for_load_state("networkidle")
    path = PICTURES / f"{name}.png"
    page.screenshot(path=path, scale="css", animations="disabled")
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
