"""Editing policy: nobody's change is lost, every change is history, what can't be is said in the form."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Max
from django.forms.models import ModelForm
from django.http import HttpRequest, HttpResponse
from simple_history.admin import SimpleHistoryAdmin

from actions import pausing
from actions.admin.read_only import NeverDelete

if TYPE_CHECKING:
    _Form = ModelForm[Any]
    _Admin = admin.ModelAdmin[Any]
else:
    _Form, _Admin = ModelForm, SimpleHistoryAdmin


def latest_history_id(row: Any) -> int:
    """The version of a row that has history; 0 while it has none."""
    found = row.history.model.objects.filter(id=row.pk).aggregate(newest=Max("history_id"))
    return found["newest"] or 0


class VersionedForm(_Form):
    """Refuses to save what was opened before somebody else's change, and what the subclass finds wrong.

    The row is locked while the version is compared: of two that save at once, the second is refused as well.
    """

    seen_version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.before: Any = None
        if self.instance.pk and "seen_version" in self.fields:
            self.initial["seen_version"] = latest_history_id(self.instance)

    def clean(self) -> dict[str, Any] | None:
        found = super().clean()
        if self.instance.pk:
            # Not the form's own instance: that one was read before the lock.
            self.before = self._meta.model._base_manager.select_for_update().get(pk=self.instance.pk)
            newest = self.before.history.order_by("-history_id").first()
            if (newest.history_id if newest else 0) != (self.cleaned_data.get("seen_version") or 0):
                self.add_error(None, self._overtaken(newest))
        return found

    def _overtaken(self, newest: Any) -> str:
        who = f" by {newest.history_user}" if newest and newest.history_user else ""
        when = f" at {newest.history_date:%H:%M:%S} UTC" if newest else ""
        return (
            f"This was changed{who}{when}, after you opened the page. Nothing was saved. "
            "Your entries are still shown below: open the page anew and make your change there."
        )

    def clean_pause_reason(self) -> str:
        reason = str(self.cleaned_data.get("pause_reason") or "")
        if wrong := pausing.fault(paused=bool(self.cleaned_data.get("paused")), reason=reason):
            raise forms.ValidationError(wrong)
        return reason

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # Django's own hook, untyped in the stubs
        for name, messages in self.faults().items():
            for message in messages:
                self.add_error(name if name in self.fields else None, message)

    def faults(self) -> dict[str, list[str]]:
        """Field (any other name: the whole form) → what is wrong with `self.instance`, as it would be."""
        return {}

    def clean_object(self, name: str) -> Any:
        # An emptied text area comes as None, which is not what an empty object is stored as.
        value = self.cleaned_data.get(name)
        return {} if value is None else value


class HistoryAdmin(NeverDelete, _Admin):
    """What may be edited. `delete_selected` is off for the whole site; history keeps who changed what."""

    object_history_list_template = "admin/landed/history_list.html"
    actions_on_top = True

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        obj._history_user = request.user
        if not change:
            obj.save()
            return
        # Only what was changed here: columns that machines write meanwhile are left as they are. Compared with
        # the locked row, because `changed_data` misjudges JSON.
        columns = {field.name for field in obj._meta.concrete_fields} & set(form.cleaned_data)
        changed = [name for name in columns if getattr(obj, name) != getattr(form.before, name)]
        if changed:
            obj.save(update_fields=changed)

    def history_form_view(
        self,
        request: HttpRequest,
        object_id: str,
        version_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        # django-simple-history hides its button when reverting is off, but takes the POST all the same.
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        found: HttpResponse = super().history_form_view(request, object_id, version_id, extra_context)  # type: ignore[misc]  # SimpleHistoryAdmin at runtime
        return found
