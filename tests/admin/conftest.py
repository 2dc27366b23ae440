"""What the admin's tests share."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import make_person


@pytest.fixture
def person(db: None) -> User:
    return make_person("admin")


@pytest.fixture
def page(person: User) -> Client:
    """A browser in which an administrator is logged in."""
    return browser_of(person)


def browser_of(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def form_of(response: Any) -> dict[str, Any]:
    """What a browser would send back from an admin form as it was opened."""
    form = response.context["adminform"].form
    found: dict[str, Any] = {}
    for name, field in form.fields.items():
        bound = form[name]
        value = bound.value()
        if hasattr(field.widget, "decompress"):
            for number, part in enumerate(field.widget.decompress(value)):
                found[f"{bound.html_name}_{number}"] = "" if part is None else str(part)
        elif isinstance(value, bool):
            if value:
                found[name] = "on"
        elif value is not None:
            found[name] = value
    for formset in response.context["inline_admin_formsets"]:
        for bound in formset.formset.management_form:
            found[bound.html_name] = bound.value()
    return found


def url(row: Any, page: str = "change") -> str:
    return f"/admin/actions/{row._meta.model_name}/{row.pk}/{page}/"


def save(page: Client, row: Any, **changes: Any) -> Any:
    """Opens the row's form, changes something, saves."""
    return page.post(url(row), form_of(page.get(url(row))) | changes, follow=True)


def errors(response: Any) -> str:
    return json.dumps(response.context["adminform"].form.errors) if "adminform" in response.context else ""
