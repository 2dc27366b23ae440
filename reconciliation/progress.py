"""How far the way through a downstream's books has come, over as many looks as it takes. Touches no table but
`LookBack`.

A look is cut off where it has read too much at once, or where the books broke. What it read is stored, and the next
look goes on behind it, by the connector's own cursor: so a backlog of any length is read to its end. What is booked
meanwhile is seen by the way after this one, which begins before this one began.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from actions.canonical import canonical, digest
from actions.connectors.base import Page
from actions.models import Downstream
from reconciliation.models import LookBack

# What is longer is no place to go on from.
_LONGEST_CURSOR = 2_000
# So many looks in a row may get no page from where the last one ended, then the place is given up.
_GIVE_UP_AFTER = 10
# Who has been catching up for longer than a day is not getting on as people think; nor is one that nobody continues.
_A_LONG_WAY, _ABANDONED = timedelta(days=1), timedelta(hours=1)

CATCHING_UP = "catching_up"


@dataclass(frozen=True)
class Way:
    """From its beginning to `cursor`; the columns of `LookBack` that are about it.

    `question`: asked of whom, for what: another one has other cursors. `mark`: a cursor that was passed; passed
    again, the pages go in a circle.
    """

    began_at: datetime
    question: str
    cursor: str = ""
    mark: str = ""
    pages: int = 0
    unread: int = 0
    stuck: int = 0


def question_of(downstream: Downstream, since: datetime) -> str:
    """The digest of everything that a cursor may depend on."""
    asked = [downstream.connector, downstream.base_url, downstream.account, downstream.config, since.isoformat()]
    return digest(canonical(asked))


def take_up(row: LookBack, question: str, *, now: datetime) -> Way:
    """The way that the next look goes on with: the one under way, if the question is still the same, or a new one."""
    if not row.cursor or row.question != question or row.began_at is None:
        return Way(began_at=now, question=question)
    return Way(row.began_at, row.question, row.cursor, row.mark, row.pages, row.unread, row.stuck)


def past(way: Way, pages: Sequence[Page]) -> Way:
    """The way as it is once these pages, the next of it, are stored; unchanged where nobody can go on behind them."""
    done = _done(pages)
    cursor = done[-1].after if done else None
    if not cursor or len(cursor) > _LONGEST_CURSOR:
        return way
    count = way.pages + len(done)
    # Brent's way to find a circle of any length with one mark: it is set anew after twice as many pages.
    mark = cursor if count.bit_length() > way.pages.bit_length() else way.mark
    unread = way.unread + sum(page.unread for page in done)
    return replace(way, cursor=cursor, mark=mark, pages=count, unread=unread, stuck=0)


def _done(pages: Sequence[Page]) -> Sequence[Page]:
    """Those behind which it can go on.

    Entries without ids are told from their like by counting, and their like stands beside them: such a look goes on
    only from between two that are not alike, which the last page can't show.
    """
    if all(entry.entry_id for page in pages for entry in page.entries):
        return pages
    for count in range(len(pages) - 1, 0, -1):
        before, behind = pages[count - 1].entries, pages[count].entries
        if before and behind and (before[-1].entry_id or before[-1].raw != behind[0].raw):
            return pages[:count]
    return ()


def write(downstream: Downstream, way: Way, *, until: datetime) -> None:
    """Only for whoever still has the claim; inside the transaction that stores what was read up to there."""
    LookBack.objects.filter(downstream=downstream, next_at=until).update(**asdict(way))


def stop_short(row: LookBack, problem: str, *, begun: Way, pages: int) -> str:
    """After a look that did not come to the end; it was `begun` there and got so many pages.

    Says what is so, in words that begin with a code. Changes `row`, and does not save it.
    """
    code = problem.split(":", 1)[0]
    if code == "repeated_cursor":
        leave(row)
    elif row.cursor and row.cursor != begun.cursor:
        read = f"{row.pages:,} page{'' if row.pages == 1 else 's'} read so far"
        if code == "too_many_pages":
            return f"{CATCHING_UP}: {read}; the next look goes on behind them."
        return f"{problem[:200]} ({read}; the next look goes on behind them.)"
    elif begun.cursor and not pages:
        row.stuck += 1
        if code == "bad_question" or row.stuck >= _GIVE_UP_AFTER:
            leave(row)
            return (
                f"cursor_refused: Nothing more came from where the last look ended, the next begins anew. {problem}"
            )
    return problem


def leave(row: LookBack) -> None:
    """The next look is the first of a new way. Does not save."""
    row.began_at, row.question, row.cursor, row.mark = None, "", "", ""
    row.pages = row.unread = row.stuck = 0


def is_catching_up(row: LookBack, now: datetime) -> bool:
    """Whether it is behind only because there is much to read, and gets on with it."""
    began = row.began_at is not None and row.began_at > now - _A_LONG_WAY
    return began and row.problem.startswith(CATCHING_UP) and row.next_at > now - _ABANDONED
