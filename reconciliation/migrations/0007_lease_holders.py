"""Until now the owner of a case was whoever held its lease; from here on these are two things."""

from django.db import migrations
from django.db.models import F


def name_holders(apps, schema_editor):
    reviews = apps.get_model("reconciliation", "Review").objects.filter(closed_at=None, owner__isnull=False)
    reviews.update(holder=F("owner"), owner=None)


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0006_desk")]

    operations = [migrations.RunPython(name_holders, migrations.RunPython.noop)]
