"""When the next anchor over all histories is due, and what became of the last one."""

from django.db import models


class Anchoring(models.Model):
    """One row for all clocks. What an anchor says stands in its file, outside the database (docs/history.md)."""

    id = models.PositiveSmallIntegerField(primary_key=True, editable=False)
    next_at = models.DateTimeField(help_text="Whoever moves it on writes the anchor.")
    written_at = models.DateTimeField(null=True)
    name = models.CharField(max_length=200, blank=True, help_text="The newest anchor's file.")
    digest = models.CharField(max_length=64, blank=True, help_text="And its digest.")
    problem = models.CharField(max_length=300, blank=True, help_text="Why the last try wrote none.")

    class Meta:
        verbose_name_plural = "anchorings"

    def __str__(self) -> str:
        return self.name or "no anchor yet"
