"""What the agents are to do, drawn from the seed: each proposal with the faults that are ordered for it.

Faults are derived from the sandbox's own registry, so that a new one is covered by itself; each comes in turn.
"""

import random
from dataclasses import dataclass, field
from itertools import count

from sandbox.faults import FAULTS
from tests.chaos import plan
from tests.chaos.seeding import AGENTS, PAYOUT, REFUND, TRANSFER

# Of a hundred proposals so many meet a fault at the downstream, so many are made badly, and of a thousand so many are
# large: at first and later. At first more of them, so that every kind has come after a hundred, however slow it goes.
_FIRST = 100
_SHARES = ((45, 12, 180), (16, 4, 80))

# What the book itself gets wrong: an entry that is written by hand under the intent's own key.
BY_HAND = ("entry_twice", "entry_of_another_amount", "entry_taken_back")
# What the agents do badly.
OF_AGENTS = (
    "agent_hangs_up_and_repeats",
    "agent_dies",
    "agent_repeats",
    "agent_uses_the_key_again",
    "agent_rephrases",
)
OF_SENDING = tuple(name for name, fault in FAULTS.items() if fault.target == "refund")
OF_THE_LEDGER = tuple(name for name, fault in FAULTS.items() if fault.target == "ledger")
OF_THE_LISTENER = tuple(name for name, fault in FAULTS.items() if fault.target == "listener")

# Shorter or longer than the deadline, where the default would take too long.
_SECONDS = {"slow": plan.DEADLINE_S + 1, "silent": 6.0, "pending_then_failed": 1.5}
# After one of these it is known to be unknown, and the ledger is asked.
_LOST, _NOT_BOOKED = "lose_response", "error_500_not_booked"


@dataclass(frozen=True)
class Order:
    """One proposal. `faults`: (name, seconds, times) to be ordered at the service before; `by_hand`: what is written
    into its book afterwards; `manner`: what the agent does badly; `fees`: entries that make the ledger turn pages."""

    agent: str
    kind: str
    request_key: str
    subject: str
    amount_minor: int
    currency: str
    faults: tuple[tuple[str, float | None, int], ...] = ()
    by_hand: str = ""
    manner: str = ""
    fees: int = 0

    @property
    def amount(self) -> str:
        return f"{self.amount_minor // 100}.{self.amount_minor % 100:02}"


@dataclass
class Deck:
    """Every card once in a random order, then all of them again."""

    cards: tuple[str, ...]
    dice: random.Random
    _left: list[str] = field(default_factory=list)

    def draw(self) -> str:
        if not self._left:
            self._left = self.dice.sample(self.cards, len(self.cards))
        return self._left.pop()

    def put_back(self, card: str) -> None:
        """It could not be played: later, before the others come again."""
        self._left.insert(0, card)


class Orders:
    """An endless stream. Not for several threads at once."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(f"load {seed}")
        self._faults = Deck((*OF_SENDING, *OF_THE_LEDGER, *BY_HAND), self._dice)
        self._manners = Deck(OF_AGENTS, self._dice)
        self._numbers = {agent: count(1) for agent in AGENTS}
        self._drawn = 0

    def draw(self) -> Order:
        dice = self._dice
        agent = dice.choice(AGENTS)
        # Both agents number their keys from one: the same keys, and never the same intent.
        number = next(self._numbers[agent])
        kind = dice.choices((REFUND, PAYOUT, TRANSFER), (50, 40, 10))[0]
        few, badly, large = _SHARES[self._drawn >= _FIRST]
        self._drawn += 1
        faulty = dice.randrange(100) < few
        faults, by_hand, fees = self._fault() if faulty else ((), "", 0)
        manner = self._manners.draw() if dice.randrange(100) < badly else ""
        if manner == "agent_rephrases":
            # While the first is unknown, and stays so for a while.
            faults, by_hand, fees = ((_LOST, None, 1), ("ledger_error", None, 2)), "", 0
        if by_hand or fees or manner == "agent_rephrases":
            kind = PAYOUT  # no second sending, which could settle it before the book was looked into
        if kind == TRANSFER and any(name.startswith("trickle") for name, _, _ in faults):
            kind = PAYOUT  # an agent that sends it itself would read for minutes; Landed has a deadline
        return Order(
            agent=agent,
            kind=kind,
            request_key=f"task-{number}",
            subject=f"{agent[0]}-{number}",
            # A transfer that was approved would wait for its agent to come back for it.
            amount_minor=self._amount(large=0 if by_hand or fees or kind == TRANSFER else large),
            currency=dice.choice(plan.CURRENCIES),
            faults=faults,
            by_hand=by_hand,
            manner=manner,
            fees=fees,
        )

    def _amount(self, *, large: int) -> int:
        """So many of a thousand are large: most for a person afterwards, some for one before, a few for two."""
        if (throw := self._dice.randrange(1_000)) >= large:
            return self._dice.randrange(100, 20_000)
        shares = ((0.15, plan.TWO_ABOVE), (0.35, plan.APPROVE_ABOVE), (1.0, plan.REVIEW_ABOVE))
        above = next(limit for share, limit in shares if throw < share * large)
        return above + self._dice.randrange(1, 10_000)

    def _fault(self) -> tuple[tuple[tuple[str, float | None, int], ...], str, int]:
        name = self._faults.draw()
        if name in BY_HAND:
            first = _NOT_BOOKED if name == "entry_of_another_amount" else _LOST
            return ((first, None, 1),), name, 0
        if name == "ledger_page_2_error":
            return ((_NOT_BOOKED, None, 1), (name, None, 1)), "", 3
        if name in OF_THE_LEDGER:
            return ((_LOST, None, 1), (name, None, 2)), "", 0
        return ((name, _SECONDS.get(name), 1),), "", 0
