"""New databases are made by one migration per app, which stands for all that older ones went through."""

from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState

APPS = ("actions", "reconciliation")


@pytest.mark.either_database
def test_the_long_way_ends_where_the_short_one_does() -> None:
    """Whoever came by the single steps has the same tables as whoever begins today."""
    steps = MigrationLoader(None, replace_migrations=False)
    ends = [max(node for node in steps.graph.nodes if node[0] == app and "_squashed_" not in node[1]) for app in APPS]
    assert differences(steps.project_state(ends), MigrationLoader(None).project_state()) == {}
    assert differences(MigrationLoader(None).project_state(), ProjectState.from_apps(apps)) == {}


def differences(one: ProjectState, other: ProjectState) -> dict[str, Any]:
    found = MigrationAutodetector(one, other)._detect_changes()
    return {app: found[app] for app in APPS if app in found}


@pytest.mark.django_db(transaction=True)
def test_a_database_that_came_by_the_single_steps_has_nothing_left_to_do() -> None:
    applied = MigrationRecorder.Migration.objects.filter(app__in=APPS)
    before = set(applied.values_list("app", "name"))
    applied.filter(name__contains="_squashed_").delete()
    call_command("migrate", verbosity=0)
    assert set(applied.values_list("app", "name")) == before
    assert any("_squashed_" in name for _, name in before)
    assert "actions_intent" in connection.introspection.table_names()
