"""Bugs in what people decide."""

from tests.simulation.bugs.changing import Bug, Change

BUGS = (
    Bug(
        "undone_takes_effect",
        "It was decided.",
        (
            Change(
                "reconciliation.reviews.pending:waiting",
                "followed_by=None, takes_effect_at__isnull=False",
                "takes_effect_at__isnull=False",
            ),
            Change(
                "reconciliation.reviews.pending:carry_out",
                "voiding.about(row, Choice.EFFECT, row.person, now=now)",
                "pass",
            ),
        ),
    ),
    Bug(
        "effect_before_its_time",
        "Why wait?",
        (
            Change("reconciliation.reviews.pending:due", "takes_effect_at__lte=now", "takes_effect_at__isnull=False"),
            Change("reconciliation.reviews.pending:take_effect", ", takes_effect_at__lte=now", ""),
        ),
    ),
    Bug(
        "one_person_twice",
        "Two votes are two votes.",
        (
            Change("reconciliation.reviews.deciding:refuse_second_vote", "first.person_id == person.pk", "False"),
            Change(
                "reconciliation.reviews.claiming:claim",
                ' & ~Exists(_first_votes(person).filter(review=OuterRef("pk")))',
                "",
            ),
        ),
    ),
    Bug(
        "one_is_enough",
        "She knows what she does.",
        (Change("reconciliation.reviews.deciding:_decide", " and vote is None", " and vote is None and False"),),
    ),
    Bug(
        "stale_page_decides",
        "The person has looked.",
        (
            Change("reconciliation.reviews.deciding:_disagrees", "digest, verdict = known", "return False"),
            Change("reconciliation.reviews.pending:facts_moved", "return choice in", "return False and choice in"),
        ),
    ),
    Bug(
        "guard_not_looked_at",
        "It was approved.",
        (Change("reconciliation.reviews.effects:_approve", "if not decision.guard_waived:", "if False:"),),
    ),
)
