"""A real browser in front of the desk: who sits there, what its console said, what axe finds."""

import shutil
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from django.test import Client

CHROMIUM_FLAGS = ["--no-sandbox", "--disable-quic", "--disable-background-networking", "--no-first-run"]
DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}

# In every document before its own scripts: what the policy refused, whoever caused it.
LISTEN = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.refused.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
});
"""


def find_chromium() -> str | None:
    """The same engine without the windows, where there is one: it takes a sixth less time."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


@dataclass
class Console:
    """What a page's console said, errors that nobody caught included."""

    lines: list[str] = field(default_factory=list)

    def listen(self, page: Any) -> None:
        page.add_init_script(LISTEN)
        page.on("console", lambda said: self._hear(f"{said.type}: {said.text} {said.location['url']}"))
        page.on("pageerror", lambda error: self.lines.append(str(error)))

    def _hear(self, line: str) -> None:
        """What htmx says of a request that ended because the page was left is no fault of the page: two lines."""
        if not line.startswith("error: htmx:sendAbort"):
            self.lines.append(line)
        elif self.lines and self.lines[-1].startswith("error: htmx:afterRequest"):
            self.lines.pop()

    def besides(self, *expected: str) -> list[str]:
        """What it said apart from lines with one of these words in them."""
        return [line for line in self.lines if not any(word in line for word in expected)]


def log_in(page: Any, username: str, password: str) -> None:
    page.goto("/login/")
    page.fill("[name=username]", username)
    page.fill("[name=password]", password)
    page.click("main button[type=submit]")
    page.wait_for_selector("nav.tabs")


def find_barriers(page: Any, *, rules: Collection[str] = ()) -> list[str]:
    """What axe calls serious or critical on the page as it stands; of all rules unless some are named.

    The page needs a context with `bypass_csp`: axe comes into it as text, which the product's policy rightly refuses.
    """
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    found = page.evaluate("options => axe.run(options)", options)["violations"]
    return [_tell(one) for one in found if one["impact"] in ("serious", "critical")]


def _tell(found: dict[str, Any]) -> str:
    where = [" ".join(map(str, node["target"])) for node in found["nodes"][:3]]
    why = found["nodes"][0].get("failureSummary", "").replace("\n", " ")
    return f"{found['id']} at {'; '.join(where)}: {why}"


def let_in(context: Any, person: Any, base_url: str) -> None:
    """Logs `person` in without the login page, which has tests of its own."""
    client = Client()
    client.force_login(person)
    context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": base_url}])


def open_case(page: Any, order: str, *, tab: str = "") -> None:
    """From the queue, as one would: the row of that order."""
    page.goto(f"/?tab={tab}" if tab else "/")
    row_of(page, order).locator("a.row-link").click()
    page.wait_for_selector("main.case .says, main.case h1")


def row_of(page: Any, order: str) -> Any:
    return page.locator("#main tbody tr", has_text=order)
