"""What the demo's database starts with. Run again, it adds what is missing and leaves the rest as it is."""

import tomllib
from dataclasses import asdict, dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import transaction

from actions import tokens
from actions.models import Agent, Downstream, Intent, Kind, Token
from reconciliation import roles

_LABEL = "demo"


@dataclass(frozen=True)
class Login:
    username: str
    password: str
    role: str


def _login(username: str, role: str) -> Login:
    # Known to everybody, on purpose: the demo listens on the loopback interface only.
    return Login(username, f"{username}-demo-password", role)


LOGINS = (
    _login("rita", "reviewer"),
    _login("ravi", "reviewer"),
    _login("sofia", "supervisor"),
    _login("otto", "auditor"),
    _login("ada", "admin"),
    _login("alan", "admin"),
)


def logins() -> list[dict[str, str]]:
    return [asdict(login) for login in LOGINS]


def seed(*, sandbox_url: str, stripe_url: str = "") -> dict[str, str]:
    """Policy, agents and people. Returns a new token's text per agent; the tokens of earlier runs end."""
    roles.ensure()
    _seed_people()
    with transaction.atomic():
        _seed_policy(_fixture("demo"), sandbox_url)
        if stripe_url:
            _seed_policy(_fixture("stripe"), stripe_url)
            Downstream.objects.filter(name="stripe").update(base_url=stripe_url)
            for agent in Agent.objects.filter(built_in=False):
                agent.kinds.add(*Kind.objects.filter(downstream__name="stripe"))
        # The sandbox is the same, books and all; only its port is new. So not a change of identity.
        Downstream.objects.filter(name="payments").update(base_url=sandbox_url)
        return {agent.name: _renew_token(agent) for agent in Agent.objects.filter(built_in=False)}


def _fixture(name: str) -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads((settings.BASE_DIR / "fixtures" / f"{name}.toml").read_text())


def _seed_people() -> None:
    for login in LOGINS:
        if User.objects.filter(username=login.username).exists():
            continue
        is_admin = login.role == "admin"
        # One statement each: passwords take long to hash, and nobody else should wait for a transaction.
        user = User(
            username=login.username,
            first_name=login.username.title(),
            # No such domain, by RFC 2606: the demo's e-mails are files, whatever happens.
            email=f"{login.username}@landed.invalid",
            is_staff=is_admin,
            is_superuser=is_admin,
        )
        user.set_password(login.password)
        user.save()
        if not is_admin:
            user.groups.add(Group.objects.get(name=login.role))


def _seed_policy(policy: dict[str, list[dict[str, Any]]], base_url: str) -> None:
    for fields in policy["downstream"]:
        _make(Downstream, fields | {"base_url": base_url})
    for fields in policy["kind"]:
        _make(Kind, fields | {"downstream": Downstream.objects.get(name=fields["downstream"])})
    for fields in policy.get("agent", []):
        kinds = fields.pop("kinds")
        agent, created = _make(Agent, fields)
        if created:
            agent.kinds.set(Kind.objects.filter(name__in=kinds))


def _make(model: type[Any], fields: dict[str, Any]) -> tuple[Any, bool]:
    found = model.objects.filter(name=fields["name"]).first()
    if found is not None:
        return found, False
    made = model(**fields)
    made.full_clean()
    made.save()
    return made, True


def known_request_keys() -> frozenset[str]:
    """The request keys of what earlier runs proposed."""
    keys = Intent.objects.filter(agent__built_in=False).values_list("request_key", flat=True)
    return frozenset(key for key in keys if key)


def _renew_token(agent: Agent) -> str:
    for old in Token.objects.filter(agent=agent, label=_LABEL, revoked_at__isnull=True):
        tokens.revoke(old)
    _, text = tokens.create(agent, label=_LABEL, may_propose=True, may_report=True, may_read=True)
    return text
