"""Nothing but actions/transitions.py writes a status: the source is read, not trusted."""

import ast
import re
from pathlib import Path

import pytest
from django.apps import apps

ROOT = Path(__file__).resolve().parents[2]
WRITER = ROOT / "actions" / "transitions.py"
# `client` and `sandbox` import nothing of the app and don't know its tables.
PACKAGES = ("actions", "reconciliation", "config")

_WRITING_CALLS = {"update", "create", "get_or_create", "update_or_create", "aupdate", "acreate"}
_SQL = re.compile(r"\b(update|insert\s+into|replace\s+into|merge\s+into)\b.*\bactions_intent\b", re.I | re.S)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _targets(node: ast.AST) -> list[ast.expr]:
    found: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        found = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor | ast.NamedExpr):
        found = [node.target]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        found = [node.optional_vars]
    flat: list[ast.expr] = []
    while found:
        one = found.pop()
        if isinstance(one, ast.Tuple | ast.List):
            found += one.elts
        else:
            flat.append(one.value if isinstance(one, ast.Starred) else one)
    return flat


def _says_status(node: ast.expr) -> bool:
    """Whether a literal (or anything inside it) names the column."""
    return any(isinstance(inner, ast.Constant) and inner.value == "status" for inner in ast.walk(node))


def _call(node: ast.Call) -> str:
    name = _name(node.func)
    named = {keyword.arg for keyword in node.keywords}
    spread = [keyword.value for keyword in node.keywords if keyword.arg is None]
    if name in _WRITING_CALLS and ("status" in named or any(_says_status(value) for value in spread)):
        return f"{name}(status=…)"
    if name in {"update_or_create", "get_or_create"}:
        defaults = [k.value for k in node.keywords if k.arg in {"defaults", "create_defaults"}]
        if any(_says_status(value) for value in defaults):
            return f"{name}(defaults={{'status': …}})"
    if name in {"Intent", "note"} and ("status" in named or any(_says_status(value) for value in spread)):
        return f"{name}(status=…)"
    if name in {"bulk_update", "save", "asave"}:
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if any(_says_status(value) for value in arguments):
            return f"{name}(… 'status' …)"
    if name in {"setattr", "__setattr__"} and any(_says_status(value) for value in node.args):
        return "setattr(…, 'status', …)"
    return ""


def writes_of_status(source: str) -> list[tuple[int, str]]:
    """Lines that write, or could write, an attribute or a column `status`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        for target in _targets(node):
            if isinstance(target, ast.Attribute) and target.attr == "status":
                found.append((target.lineno, ".status = …"))
            if isinstance(target, ast.Subscript) and _name(target.value) == "__dict__" and _says_status(target.slice):
                found.append((target.lineno, "__dict__['status'] = …"))
        if isinstance(node, ast.Call) and (what := _call(node)):
            found.append((node.lineno, what))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _SQL.search(node.value):
            found.append((node.lineno, "raw SQL"))
        if isinstance(node, ast.JoinedStr):
            text = "".join(v.value if isinstance(v, ast.Constant) else " actions_intent " for v in node.values)
            if re.search(r"\b(update|insert\s+into)\b\s+\"?\s*actions_intent", text, re.I):
                found.append((node.lineno, "raw SQL with a table put in"))
    return sorted(found)


@pytest.mark.parametrize(
    "line",
    [
        "intent.status = 'failed'",
        "intent.status, x = 'failed', 1",
        "[a, *intent.status] = b",
        "intent.status: str = 'failed'",
        "intent.status += 'x'",
        "for intent.status in found: pass",
        "with x as intent.status: pass",
        "self.intent.status = Status.FAILED",
        "Intent.objects.filter(pk=1).update(status='failed')",
        "found.update(note='x', status=Status.FAILED)",
        "found.update(**{'status': 'failed'})",
        "found.update(**({'note': ''} | {'status': 'failed'}))",
        "Intent.objects.bulk_update(found, ['note', 'status'])",
        "Intent.objects.bulk_update(found, fields=('status',))",
        "intent.save(update_fields=['status'])",
        "Intent(pk=1, status='held')",
        "Intent(**{'status': 'held'})",
        "Intent.objects.create(status='held')",
        "Intent.objects.update_or_create(pk=1, defaults={'status': 'failed'})",
        "Intent.objects.get_or_create(pk=1, defaults={'status': 'failed'})",
        "setattr(intent, 'status', 'failed')",
        "object.__setattr__(intent, 'status', 'failed')",
        "intent.__dict__['status'] = 'failed'",
        "transitions.note(intent.pk, status='failed')",
        "cursor.execute('UPDATE actions_intent SET status = %s')",
        "cursor.execute('update \"actions_intent\" set note = 1')",
        "cursor.execute(f'UPDATE {table} SET status = 1')",
        "cursor.execute('INSERT INTO actions_intent (id) VALUES (1)')",
    ],
)
def test_each_way_of_writing_a_status_is_seen(line: str) -> None:
    assert writes_of_status(line), line


@pytest.mark.parametrize(
    "line",
    [
        "x = intent.status",
        "Intent.objects.filter(status='held').update(note='')",
        "Intent.objects.filter(Q(status='held')).exclude(status='x').update(external_id='')",
        "if intent.status == 'failed': pass",
        "found['status'] = intent.status",
        "render(request, {'status': intent.status})",
        "cursor.execute('SELECT status FROM actions_intent')",
        "StaleTransition(status=intent.status)",
        "intent.refresh_from_db(fields=['status'])",
        "attempt.http_status = 200",
    ],
)
def test_reading_a_status_is_no_write(line: str) -> None:
    assert not writes_of_status(line), line


def test_intent_alone_has_a_column_called_status() -> None:
    """So that whatever the search finds is about an intent (or is one more column to think about)."""
    having = [
        model.__name__
        for label in ("actions", "reconciliation")
        for model in apps.get_app_config(label).get_models()
        if any(field.name == "status" for field in model._meta.get_fields())
    ]
    assert having == ["Intent"]


# Attributes of things that are no intents, by file; each is looked at by a person before it is added here.
NOT_AN_INTENT = {
    # The HTTP status of an answer.
    ("actions/transport.py", ".status = …"),
}


def test_nothing_else_assigns_a_status() -> None:
    """Rule 7."""
    found = []
    files = [path for name in PACKAGES for path in (ROOT / name).rglob("*.py") if "migrations" not in path.parts]
    assert WRITER in files
    assert len(files) > 60
    for path in files:
        if path == WRITER:
            continue
        place = path.relative_to(ROOT).as_posix()
        for line, what in writes_of_status(path.read_text()):
            if (place, what) not in NOT_AN_INTENT:
                found.append(f"{place}:{line} {what}")
    assert found == []


def test_the_writer_itself_is_seen() -> None:
    """The search finds what it is meant to find where that is."""
    assert writes_of_status(WRITER.read_text())
