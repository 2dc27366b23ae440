"""Who is at the desk, and who has what. Counts say what lies where; they rank nobody."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import Permission, User
from django.db.models import Count, Exists, F, Min, OuterRef, Q, QuerySet

from reconciliation.figures.open_cases import open_ones
from reconciliation.models import Choice, Decision, Review
from reconciliation.reviews import claiming, pending, people

# So many cases are listed one by one; the counts beside the names are of all.
MOST = 200
DECIDED = (*pending.VOTES, Choice.CORRECT, Choice.LINK, Choice.DUPLICATE, Choice.NOT_OURS)


@dataclass(frozen=True)
class Load:
    """What one person has: cases in their hands now, and their own, waiting ones among them."""

    held: int = 0
    owned: int = 0
    waiting: int = 0
    overdue: int = 0
    oldest: datetime | None = None


@dataclass(frozen=True)
class Colleague:
    """Somebody with a role at the desk, or who has cases although they have none (any more)."""

    person: User
    roles: tuple[str, ...]
    load: Load
    decided_today: int
    decided_week: int

    @property
    def stranded(self) -> bool:
        """Their cases need somebody else: they can't come and decide them."""
        return self.load.owned > 0 and not (self.person.is_active and self.roles)


def colleagues(now: datetime, *, today: datetime) -> list[Colleague]:
    """Everybody with a role or a case, by name. `today`: when the reader's day began. Five queries."""
    loads, decided = _loads(now), _decided(now, today)
    with_role = _with_role()
    roles = _roles(with_role)
    everybody = {person.pk: person for person in with_role}
    everybody |= User.objects.in_bulk([pk for pk in {*loads, *decided} if pk not in everybody])
    found = [
        Colleague(person, roles.get(pk, ()), loads.get(pk, Load()), *decided.get(pk, (0, 0)))
        for pk, person in everybody.items()
    ]
    return sorted(found, key=lambda one: (not one.person.is_active, one.person.get_username().casefold()))


def _with_role() -> list[User]:
    """People who may be at the desk, deactivated ones too: by a group, by permissions of their own, or in all."""
    labels = [name.split(".", 1) for name in (people.DECIDE, people.SUPERVISE, people.AUDIT)]
    desk = Permission.objects.filter(
        content_type__app_label="reconciliation", codename__in=[codename for _, codename in labels]
    )
    found = User.objects.filter(
        Q(is_superuser=True)
        | Exists(User.groups.through.objects.filter(user=OuterRef("pk"), group__permissions__in=desk))
        | Exists(User.user_permissions.through.objects.filter(user=OuterRef("pk"), permission__in=desk))
    )
    return list(found.prefetch_related("groups"))


def _roles(found: Iterable[User]) -> Mapping[int, tuple[str, ...]]:
    return {person.pk: _role(person) for person in found}


def _role(person: User) -> tuple[str, ...]:
    groups = sorted(group.name for group in person.groups.all())
    return tuple(groups) or (("superuser",) if person.is_superuser else ("permissions of their own",))


def held(now: datetime) -> QuerySet[Review]:
    """Cases in somebody's hands at this moment, or somebody's own: what is due first comes first."""
    return (
        open_ones()
        .filter(claiming.leased(now) | Q(owner__isnull=False))
        .select_related("holder", "owner", "intent__kind", "entry")
        .order_by("due_at", "pk")
    )


def _loads(now: datetime) -> Mapping[int, Load]:
    """Two queries: in whose hands, and whose own. A case that somebody owns and works on is one case."""
    whose = Q(owner__isnull=False)
    owned = _counted(open_ones().filter(whose).values(pk_of=F("owner")), now)
    working = _counted(open_ones().filter(claiming.leased(now)).values(pk_of=F("holder")), now)
    return {pk: _both(owned.get(pk), working.get(pk)) for pk in {*owned, *working}}


def _counted(rows: Any, now: datetime) -> dict[int, dict[str, Any]]:
    late = Q(due_at__lte=now) & ~claiming.waiting(now)
    found = rows.order_by().annotate(
        n=Count("pk"),
        waits=Count("pk", filter=claiming.waiting(now)),
        late=Count("pk", filter=late),
        late_alone=Count("pk", filter=late & ~Q(owner=F("holder"))),
        since=Min("opened_at"),
    )
    return {row["pk_of"]: row for row in found}


def _both(owned: dict[str, Any] | None, working: dict[str, Any] | None) -> Load:
    mine, hands = owned or {}, working or {}
    begun = [row["since"] for row in (mine, hands) if row]
    return Load(
        held=hands.get("n", 0),
        owned=mine.get("n", 0),
        waiting=mine.get("waits", 0),
        overdue=mine.get("late", 0) + hands.get("late_alone", 0),
        oldest=min(begun) if begun else None,
    )


def _decided(now: datetime, today: datetime) -> Mapping[int, tuple[int, int]]:
    """Per person: decisions since `today` began, and in the last 7 days; what they took back is none."""
    undone = Decision.objects.filter(about=OuterRef("pk"), choice=Choice.UNDO)
    since = now - timedelta(days=7)
    found = (
        Decision.objects.filter(~Exists(undone), choice__in=DECIDED, at__gte=since)
        .order_by()
        .values("person")
        .annotate(today=Count("pk", filter=Q(at__gte=today)), week=Count("pk"))
    )
    return {row["person"]: (row["today"], row["week"]) for row in found if row["person"] is not None}
