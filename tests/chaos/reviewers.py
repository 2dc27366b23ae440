"""The people: each logs in at the desk and decides cases on its pages, as a browser without scripts would.

They decide what the page recommends; what it recommends nothing about they leave open, but for approvals. Now and
then one takes a case that somebody else works on, and now and then one takes a decision back.
"""

import random
import re
import threading
from collections import Counter, deque
from dataclasses import dataclass
from html import unescape
from typing import Any

import requests

from tests.chaos.tally import Tally

KINDS = ("person_takes_part_in_a_race", "person_takes_it_back")
_RACES, _UNDOES = 0.2, 0.25


@dataclass(frozen=True)
class Done:
    """What somebody was told had been decided."""

    person: str
    review: int
    choice: str


class Desk:
    """All reviewers. `decided`: as they were told; `answers`: how the desk took their decisions."""

    def __init__(self, machine: Any, tally: Tally, *, seed: int) -> None:
        self.decided: list[Done] = []
        self.answers: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.over = threading.Event()
        self._machine, self._tally = machine, tally
        self._lately: deque[str] = deque(maxlen=6)
        people = machine.facts["people"]
        self._threads = [
            threading.Thread(target=self._work, args=(name, random.Random(f"{name} {seed}")), daemon=True)
            for name in people
        ]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join()

    def _work(self, name: str, dice: random.Random) -> None:
        person = _Person(name, self._machine, dice)
        while not self.over.wait(0.8 + dice.random() * 0.8):
            try:
                for case in self._chosen(person, dice):
                    if self.over.is_set():
                        break
                    self._take_up(person, case, dice)
            except requests.RequestException:
                continue  # the server was killed, or stands still: the next try
            except _LoggedOut:
                person.logged_in = False
            except Exception as bug:
                self.wrong.append(f"a reviewer's own bug: {bug!r}")

    def _chosen(self, person: "_Person", dice: random.Random) -> list[str]:
        if self._lately and dice.random() < _RACES:
            self._tally.add("person_takes_part_in_a_race")
            return [self._lately[-1]]
        page = person.get(f"/?tab={dice.choice(('unclaimed', 'second', 'all'))}").text
        found = list(dict.fromkeys(re.findall(r'href="(/reviews/\d+/)"', page)))
        return dice.sample(found, min(4, len(found)))

    def _take_up(self, person: "_Person", case: str, dice: random.Random) -> None:
        page = person.get(case).text
        if (form := _form(page)) is None or (choice := _choice(form, dice)) is None:
            return
        self._lately.append(case)
        reply = person.post(f"{case}decide/", _filled(form, choice))
        self.answers[_sort(reply)] += 1
        if reply.status_code != 302:
            return
        self.decided.append(Done(person.name, int(case.split("/")[2]), choice))
        if not self._tally.counts["person_takes_it_back"] or dice.random() < _UNDOES:
            self._take_back(person, case)

    def _take_back(self, person: "_Person", case: str) -> None:
        fields = _hidden(person.get(case).text)
        if "decision" not in fields:
            return  # a first vote, or it has taken effect already
        reply = person.post(f"{case}undo/", fields)
        if reply.status_code == 302:
            self._tally.add("person_takes_it_back")


class _LoggedOut(Exception):
    pass


class _Person:
    def __init__(self, name: str, machine: Any, dice: random.Random) -> None:
        self.name, self.logged_in = name, False
        self._machine, self._dice = machine, dice
        self._session = requests.Session()
        self._session.trust_env = False

    def _log_in(self) -> None:
        fields = _hidden(self._send("GET", "/login/").text)
        fields |= {"username": self.name, "password": self._machine.facts["password"]}
        self.logged_in = self._send("POST", "/login/", fields).status_code == 302

    def get(self, path: str) -> requests.Response:
        if not self.logged_in:
            self._log_in()
        reply = self._send("GET", path)
        if reply.status_code == 302:
            raise _LoggedOut
        return reply

    def post(self, path: str, fields: dict[str, str]) -> requests.Response:
        return self._send("POST", path, fields)

    def _send(self, method: str, path: str, fields: dict[str, str] | None = None) -> requests.Response:
        url = self._dice.choice(self._machine.urls) + path
        headers = {"Referer": url}
        return self._session.request(method, url, data=fields, headers=headers, timeout=8, allow_redirects=False)


def _sort(reply: requests.Response) -> str:
    """How the desk took a decision: "decided", or the title of its refusal without names and times."""
    if reply.status_code == 302:
        return "decided"
    found = re.search(r'role="alert">.*?<(?:strong|li)>(.*?)<', reply.text, re.DOTALL)
    words = re.sub(r"\w+ decided this case at .*", "decided by somebody", unescape(found[1])) if found else ""
    return f"{reply.status_code} {words.strip()}".strip()


def _form(page: str) -> str | None:
    begins = page.find('<form id="decision"')
    return None if begins < 0 else page[begins : page.index("</form>", begins)]


def _choice(form: str, dice: random.Random) -> str | None:
    """What is recommended and may be pressed; of approvals, most are given. None: this is left open."""
    buttons = re.findall(r'<button type="submit" name="choice" value="(\w+)" class="(\w*)"[^>]*?( disabled)?>', form)
    free = {name: "primary" in how for name, how, disabled in buttons if not disabled}
    if "approve" in free:
        return "approve" if dice.random() < 0.9 else "reject"
    if any(f'name="seen_verdict" value="{verdict}"' in form for verdict in ("duplicate", "partial", "mismatch")):
        return None
    recommended = [name for name, primary in free.items() if primary]
    return recommended[0] if recommended and recommended[0] in ("confirm", "fail") else None


_REASONS = {"approve": "justified", "reject": "not_justified", "confirm": "ledger", "fail": "ledger_absent"}


def _filled(form: str, choice: str) -> dict[str, str]:
    entry = re.search(r'name="entry" value="(\d+)" checked', form)
    fields = {name: value for name, value in _hidden(form).items() if name != "enter"}
    fields |= {"choice": choice, "reason": _REASONS[choice]}
    if choice == "reject":
        fields["note"] = "Not within what was agreed."
    return fields | ({"entry": entry[1]} if entry and choice == "confirm" else {})


def _hidden(page: str) -> dict[str, str]:
    found = {}
    for tag in re.findall(r"<input[^>]*type=\"hidden\"[^>]*>", page):
        name, value = re.search(r'name="([^"]+)"', tag), re.search(r'value="([^"]*)"', tag)
        if name:
            found[name[1]] = unescape(value[1]) if value else ""
    return found
