"""Gives open cases of before the stake was kept theirs: the amount in thousandths of the review limit."""

import json

from django.db import migrations


def give(apps, schema_editor):
    Review = apps.get_model('reconciliation', 'Review')
    Kind = apps.get_model('actions', 'Kind')
    found = Review.objects.filter(closed_at__isnull=True, stake=0).exclude(amount_minor=None).exclude(amount_minor=0)
    # A snapshot's text is not small, and open cases are few beside those that are closed.
    for review in found.select_related('intent__policy', 'entry').iterator(chunk_size=500):
        if review.intent_id is not None:
            limits = [json.loads(review.intent.policy.text)['limits']]
        elif review.entry_id is not None:
            limits = list(Kind.objects.filter(downstream=review.entry.downstream_id).values_list('limits', flat=True))
        else:
            continue
        # The version stays: nothing that anybody was shown is another.
        Review.objects.filter(pk=review.pk, stake=0).update(stake=_stake(review, limits))


def _stake(review, limits):
    """By the lowest of the limits for its currency; without any it is worth just one limit, and more than one in a
    currency that nobody lists."""
    above = [one[review.currency].get('review_above') for one in limits if review.currency in one]
    if not above:
        return 1001
    known = [limit for limit in above if limit is not None]
    return min(abs(review.amount_minor) * 1000 // max(min(known), 1), 10**12) if known else 1000


class Migration(migrations.Migration):

    dependencies = [
        ('actions', '0009_lists'),
        ('reconciliation', '0010_incident_index'),
    ]

    operations = [migrations.RunPython(give, migrations.RunPython.noop)]
