"""The compiler that remembers the columns of whole rows writes what Django's own writes."""

from typing import Any

import pytest
from django.db.models.sql import compiler

from tests.simulation import compiling
from tests.simulation.running import Plan, Stage, run

pytestmark = pytest.mark.either_database


def test_every_statement_of_some_runs_is_the_one_that_django_writes(
    here: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared, remembering = set(), compiling.SQLCompiler.as_sql

    def both(self: Any, *args: Any, **options: Any) -> Any:
        own = compiler.SQLCompiler(self.query.clone(), self.connection, self.using, self.elide_empty)
        ours = remembering(self, *args, **options)
        assert ours == own.as_sql(*args, **options)
        compared.add(ours[0])
        return ours

    monkeypatch.setattr(compiling.SQLCompiler, "as_sql", both)
    for seed in (3, 8):
        assert run(here, Plan(seed)).violation is None
    assert len(compared) > 60
