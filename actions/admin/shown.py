"""Columns and read-only fields whose content others supplied."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db import models
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from actions import visible

Column = Any  # a function of a row; the stubs don't know that `fields` may hold one
AGENT = "written by the agent"
OUTSIDE = "from outside"


def text(name: str, *, by: str = "", label: str = "") -> Column:
    """A text column, made safe to look at; `by` says in the label who supplied it."""
    return _column(name, lambda value: visible.visible(str(value)), by, label)


def long_text(name: str, *, by: str = "", label: str = "", most: int | None = None) -> Column:
    return _column(name, lambda value: visible.block(str(value), most=most), by, label)


def raw_json(name: str, *, by: str = "", label: str = "", most: int | None = None) -> Column:
    """A column of JSON (values, or their text), pretty."""
    return _column(name, lambda value: visible.block(visible.pretty(value), most=most), by, label)


def link_to(name: str, *, label: str = "") -> Column:
    """A foreign key as a link, without loading the row that it leads to."""

    def link(row: models.Model) -> SafeString | str:
        key = getattr(row, f"{name}_id")
        return "-" if key is None else to_page(_target(row, name), key, str(key))

    return _named(link, name, label or name.replace("_", " "))


def to_page(model: type[models.Model], key: Any, words: str) -> SafeString:
    """A link to a row's own page in the admin."""
    name = f"{admin.site.name}:{model._meta.app_label}_{model._meta.model_name}_change"
    return format_html('<a href="{}">{}</a>', reverse(name, args=[quote(key)]), visible.plain(words))


def _target(row: models.Model, name: str) -> type[models.Model]:
    found = row._meta.get_field(name).related_model
    assert isinstance(found, type)
    return found


def _column(name: str, show: Callable[[Any], SafeString], by: str, label: str) -> Column:
    def column(row: Any) -> SafeString | str:
        value = getattr(row, name)
        return "-" if value is None or value == "" else show(value)

    return _named(column, name, (label or name.replace("_", " ")) + (f" ({by})" if by else ""))


def _named(column: Any, name: str, label: str) -> Column:
    column.__name__ = name  # becomes the CSS class of the cell
    column.short_description = label
    return column
