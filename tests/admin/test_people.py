"""Whoever keeps the users can't make two people out of one."""

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client

from actions import tokens
from actions.errors import Invalid
from actions.services import application
from tests import factories

pytestmark = pytest.mark.django_db


def keeper() -> Client:
    person = factories.make_person("admin")
    person.user_permissions.set(Permission.objects.filter(content_type__app_label="auth"))
    client = Client()
    client.force_login(person)
    return client


def test_somebody_elses_password_is_set_by_superusers_only() -> None:
    other = factories.make_person("supervisor", password="not-yours-to-know")
    client = keeper()
    address = f"/admin/auth/user/{other.pk}/password/"
    assert client.get(address).status_code == 403
    client.post(address, {"password1": "now-it-is-mine-1", "password2": "now-it-is-mine-1"})
    other.refresh_from_db()
    assert other.check_password("not-yours-to-know")


def test_roles_are_given_by_superusers_only() -> None:
    group = Group.objects.create(name="deciders")
    other = factories.make_person("auditor")
    client = keeper()
    page = client.get(f"/admin/auth/user/{other.pk}/change/")
    assert page.status_code == 200
    assert 'name="groups"' not in page.content.decode()
    fields = {"username": other.username, "groups": [group.pk], "is_active": "on"}
    client.post(f"/admin/auth/user/{other.pk}/change/", fields)
    assert other.groups.count() == 0
    client.post(f"/admin/auth/group/{group.pk}/change/", {"name": "mine"})
    group.refresh_from_db()
    assert group.name == "deciders"


def test_the_built_in_application_has_no_token() -> None:
    with pytest.raises(Invalid, match="built-in"):
        tokens.create(application())
