"""Append-only history, enforced by the database itself.

Triggers refuse UPDATE, DELETE and (on PostgreSQL) TRUNCATE. They are put back after every `migrate`, because
Django rebuilds tables on SQLite and a rebuild drops them; boot refuses to run without them. PostgreSQL changes
the type of no column that a trigger's condition names: a migration that does so drops the trigger first.
"""

from dataclasses import dataclass

from django.apps import apps
from django.db import connection, models


@dataclass(frozen=True)
class Rule:
    """`fixed`: columns that no UPDATE may change; None: no UPDATE at all. Rows are never deleted.

    `frozen`: pairs of a column and those that stay as they are once it is set (itself included); `sealed`: pairs of
    a column and those that change only when it is set in the same UPDATE; `blanks`: pairs of a column and those that
    change only into nothing (an empty text or JSON object), and only once it is set.
    """

    model: str
    fixed: tuple[str, ...] | None = None
    frozen: tuple[tuple[str, tuple[str, ...]], ...] = ()
    sealed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    blanks: tuple[tuple[str, tuple[str, ...]], ...] = ()


_RULES: list[Rule] = [
    Rule("actions.Transition"),
    Rule("actions.PolicySnapshot"),
    # Its position is given once, after the commit.
    Rule(
        "actions.Event",
        fixed=("id", "intent_id", "agent_id", "type", "sequence", "intent_status", "at"),
        frozen=(("position", ()),),
    ),
    Rule("actions.EventDelivery", fixed=("id", "endpoint_id", "event_id", "created_at")),
    Rule("actions.DeliveryTry"),
    Rule(
        "actions.Intent",
        fixed=(
            "id",
            "agent_id",
            "kind_id",
            "policy_id",
            "downstream_id",
            "executor",
            "amount_minor",
            "currency",
            "payload_digest",
            "request_key",
            "idempotency_key",
            "created_at",
        ),
        frozen=(("erased_at", ()),),
        blanks=(("erased_at", ("params", "context", "note", "payee", "customer", "payload_salt")),),
    ),
    Rule("actions.Observation"),
    Rule(
        "actions.Stop",
        fixed=("id", "scope", "family", "kind_id", "placed_by", "placed_at"),
        frozen=(("lifted_at", ("lifted_by",)), ("erased_at", ())),
        blanks=(("erased_at", ("value", "key", "reason")),),
    ),
    Rule(
        "actions.Attempt",
        fixed=("id", "intent_id", "number", "fence", "executor", "claimed_at"),
        frozen=(
            ("closed_at", ("result", "reason", "closed_by", "lease_until")),
            ("late_at", ("late_result", "late_reason", "phase", "http_status")),
        ),
    ),
    # The text can be erased, once; what it was stays provable by whoever kept a copy and the salt.
    Rule(
        "actions.Evidence",
        fixed=("id", "intent_id", "attempt_id", "kind", "digest", "created_at"),
        frozen=(("erased_at", ("text", "salt")),),
        sealed=(("erased_at", ("text", "salt")),),
        blanks=(("erased_at", ("source",)),),
    ),
]


def protect(*rules: Rule) -> None:
    """Adds an app's own tables; called from its AppConfig.ready."""
    for rule in rules:
        if rule not in _RULES:
            _RULES.append(rule)


def rules() -> list[Rule]:
    """What is protected, every app's."""
    return list(_RULES)


def table_of(rule: Rule) -> str:
    model: type[models.Model] = apps.get_model(rule.model)
    return model._meta.db_table


def _names(table: str) -> list[str]:
    names = [f"{table}_no_update", f"{table}_no_delete"]
    return [*names, f"{table}_no_truncate"] if connection.vendor == "postgresql" else names


def _condition(rule: Rule, differs: str) -> str:
    """The WHEN of an UPDATE trigger: what is refused. `differs`: how the database compares with NULLs in mind."""
    parts = [f'NEW."{column}" {differs} OLD."{column}"' for column in rule.fixed or ()]
    for once, columns in rule.frozen:
        changed = " OR ".join(f'NEW."{column}" {differs} OLD."{column}"' for column in (once, *columns))
        parts.append(f'(OLD."{once}" IS NOT NULL AND ({changed}))')
    for once, columns in rule.sealed:
        changed = " OR ".join(f'NEW."{column}" {differs} OLD."{column}"' for column in columns)
        parts.append(f'(NEW."{once}" IS NULL AND ({changed}))')
    for once, columns in rule.blanks:
        for column in columns:
            kept = f"""(NEW."{once}" IS NULL OR NEW."{column}" NOT IN ('', '{{}}'))"""
            parts.append(f'(NEW."{column}" {differs} OLD."{column}" AND {kept})')
    return " OR ".join(parts)


def _sqlite(rule: Rule) -> list[str]:
    table = table_of(rule)
    changed = "" if rule.fixed is None else f" WHEN {_condition(rule, 'IS NOT')}"
    update, delete = _names(table)
    return [
        f'CREATE TRIGGER "{update}" BEFORE UPDATE ON "{table}"{changed} '
        f"BEGIN SELECT RAISE(ABORT, 'append-only: {table}'); END",
        f'CREATE TRIGGER "{delete}" BEFORE DELETE ON "{table}" '
        f"BEGIN SELECT RAISE(ABORT, 'append-only: {table}'); END",
    ]


_FUNCTION = """
CREATE OR REPLACE FUNCTION landed_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'append-only: %', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation'; END $$
"""


def _postgresql(rule: Rule) -> list[str]:
    table = table_of(rule)
    changed = "" if rule.fixed is None else f" WHEN ({_condition(rule, 'IS DISTINCT FROM')})"
    update, delete, truncate = _names(table)
    run = "EXECUTE FUNCTION landed_append_only()"
    return [
        f'CREATE TRIGGER "{update}" BEFORE UPDATE ON "{table}" FOR EACH ROW{changed} {run}',
        f'CREATE TRIGGER "{delete}" BEFORE DELETE ON "{table}" FOR EACH ROW {run}',
        f'CREATE TRIGGER "{truncate}" BEFORE TRUNCATE ON "{table}" FOR EACH STATEMENT {run}',
    ]


def install() -> None:
    """Puts every trigger in place; what is there already is replaced. Tables that don't exist yet are left out."""
    have = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(_FUNCTION)
        for rule in _RULES:
            table = table_of(rule)
            if table not in have:
                continue
            for name in _names(table):
                on = f' ON "{table}"' if connection.vendor == "postgresql" else ""
                cursor.execute(f'DROP TRIGGER IF EXISTS "{name}"{on}')
            for statement in _postgresql(rule) if connection.vendor == "postgresql" else _sqlite(rule):
                cursor.execute(statement)


def missing() -> list[str]:
    """Names of the triggers that should be there and are not."""
    query = (
        "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'"
        if connection.vendor == "postgresql"
        else "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        have = {name for (name,) in cursor.fetchall()}
    return [name for rule in _RULES for name in _names(table_of(rule)) if name not in have]
