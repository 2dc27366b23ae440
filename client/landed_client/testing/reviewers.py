"""People at the desk: log in over HTTP as staff do, read the case, submit its form."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final

import httpx

_NOTE: Final = "Decided by a test."
_REASONS: Final[Mapping[str, str]] = {
    "approve": "justified",
    "reject": "not_justified",
    "confirm": "ledger",
    "fail": "ledger_absent",
}


class DeskError(AssertionError):
    """The desk did not take the decision; the message is what its page says."""


class Reviewers:
    """Reviewers and a supervisor, who decide one after the other until the case is closed.

    Above a kind's limits two people have to agree, and some cases are a supervisor's: this asks as many as it takes.
    """

    def __init__(self, base_url: str, logins: Sequence[Mapping[str, str]]) -> None:
        self._people = [_Person(base_url, login) for login in logins]

    def close(self) -> None:
        for person in self._people:
            person.close()

    def approve(self, intent_id: str, *, within_s: float = 20.0) -> None:
        """Lets a held intent be sent."""
        self._decide(intent_id, "approve", within_s)

    def reject(self, intent_id: str, *, within_s: float = 20.0) -> None:
        """Withdraws a held intent for good."""
        self._decide(intent_id, "reject", within_s)

    def confirm(self, intent_id: str, *, within_s: float = 20.0) -> None:
        """Establishes that it happened, by the ledger entry that the case shows."""
        self._decide(intent_id, "confirm", within_s)

    def fail(self, intent_id: str, *, within_s: float = 20.0) -> None:
        """Establishes that it did not happen."""
        self._decide(intent_id, "fail", within_s)

    def _decide(self, intent_id: str, choice: str, within_s: float) -> None:
        case, said = self._wait_for_case(intent_id, within_s), ""
        for person in self._people:
            said = person.decide(case, choice)
            if self._people[0].case_of(intent_id) != case:
                return
        raise DeskError(f"{case} is still open after {choice!r} by {len(self._people)} people: {said}")

    def _wait_for_case(self, intent_id: str, within_s: float) -> str:
        until = time.monotonic() + within_s
        while (case := self._people[0].case_of(intent_id)) is None:
            if time.monotonic() > until:
                raise DeskError(f"within {within_s} s no case was opened about {intent_id}")
            time.sleep(0.2)
        return case


class _Person:
    """One browser that only submits forms."""

    def __init__(self, base_url: str, login: Mapping[str, str]) -> None:
        self._login = login
        self._base_url = base_url
        self._http = httpx.Client(base_url=base_url, timeout=60, follow_redirects=True, trust_env=False)
        self._logged_in = False

    def close(self) -> None:
        self._http.close()

    def case_of(self, intent_id: str) -> str | None:
        """The path of the intent's open case."""
        page = self._page(f"/intents/{intent_id}/")
        found = re.search(r'href="(/reviews/\d+/)">Open the case<', page)
        return found[1] if found else None

    def decide(self, case: str, choice: str) -> str:
        """Submits the case's form; what the page says afterwards."""
        form = _form(self._page(case), f"{case}decide/")
        if not form.fields:
            return f"{self._login['username']} is offered no decision"
        fields = form.fields | {"choice": choice, "reason": _REASONS[choice], "note": _NOTE}
        if choice == "confirm" and form.entries:
            fields["entry"] = form.checked or form.entries[0]
        page = self._submit(f"{case}decide/", fields).text
        self._release(case, page)
        return _alert(page)

    def _release(self, case: str, page: str) -> None:
        """Opening a case takes it; whoever could not close it must not keep the others from it."""
        if (form := _form(page, f"{case}release/")).fields:
            self._submit(f"{case}release/", form.fields)

    def _page(self, path: str) -> str:
        if not self._logged_in:
            self._log_in()
        return self._get(path)

    def _log_in(self) -> None:
        form = _form(self._get("/login/"), None)
        named = {"username": self._login["username"], "password": self._login["password"]}
        if "Log out" not in self._submit("/login/", form.fields | named).text:
            raise DeskError(f"{self._login['username']} could not log in")
        self._logged_in = True

    def _get(self, path: str) -> str:
        return self._http.get(path).raise_for_status().text

    def _submit(self, path: str, fields: Mapping[str, str]) -> httpx.Response:
        return self._http.post(path, data=dict(fields), headers={"Referer": self._base_url + path})


@dataclass
class _Form(HTMLParser):
    """The hidden fields of one form, and the ledger entries that it offers."""

    action: str | None
    fields: dict[str, str] = field(default_factory=dict)
    entries: list[str] = field(default_factory=list)
    checked: str = ""
    _inside: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._inside = self.action is None or found.get("action") == self.action
        elif tag == "input" and self._inside:
            self._take(found)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False

    def _take(self, found: dict[str, str]) -> None:
        name, value = found.get("name", ""), found.get("value", "")
        if found.get("type") == "hidden" and name:
            self.fields.setdefault(name, value)
        elif name == "entry":
            self.entries.append(value)
            self.checked = value if "checked" in found else self.checked


def _form(page: str, action: str | None) -> _Form:
    found = _Form(action)
    found.feed(page)
    return found


def _alert(page: str) -> str:
    """What the page says against it, or of it."""
    found = re.search(r'class="notice notice-[a-z]+" role="(?:alert|status)">(.*?)</(?:div|p)>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split()) if found else "no message"
