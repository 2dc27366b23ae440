"""Bugs in looking into books, in what follows from it, in webhooks and sweeps."""

from tests.simulation.bugs.changing import Bug, Change

BUGS = (
    Bug(
        "absence_before_lag",
        "It is not there.",
        (
            Change(
                "reconciliation.verdicts:Look.late_enough",
                "self.last_possible_send + timedelta(seconds=self.lag_s)",
                "self.last_possible_send",
            ),
        ),
    ),
    Bug(
        "absence_once",
        "It is not there, and it is late enough.",
        (
            Change(
                "reconciliation.rules:_absence_counts",
                "situation.absences >= situation.absences_needed",
                "situation.absences >= 1",
            ),
        ),
    ),
    Bug(
        "broken_look_is_absence",
        "The ledger shows nothing.",
        (Change("reconciliation.seeing:judge", "complete=not sight.problem", "complete=True"),),
    ),
    Bug(
        "first_page_only",
        "Who has more than a page?",
        (
            Change(
                "actions.connectors.http_json.look_up:_page",
                "body, unread), cursor",
                "body, unread), None",
            ),
        ),
    ),
    Bug(
        "two_candidates_settled",
        "The newest one will be it.",
        (Change("reconciliation.verdicts:_by_key", "if len(live) > 1:", "if not live and len(effects) > 9:"),),
    ),
    Bug(
        "entry_settles_two",
        "There is one that fits.",
        (
            Change(
                "reconciliation.following:settle_by_entry",
                'ties.tie(entry, intent, MatchRole.SETTLES, by="checker", now=now)',
                "pass",
            ),
            Change("reconciliation.entries:candidates_for", "taken=row.pk in taken", "taken=False"),
            # Nor is it anybody else's: what could also be another's is for people.
            Change("reconciliation.entries:candidates_for", "others=owners[row.pk]", "others=0"),
            # And whenever that was booked: within a minute the same order rarely has two.
            Change(
                "reconciliation.verdicts:_in_time",
                "facts.first_sent_at - CLOCK_SKEW <= candidate.booked_at <= last",
                "last is not None",
            ),
        ),
    ),
    Bug(
        "webhook_moves_backwards",
        "The newest message is the newest state.",
        (
            Change("reconciliation.entries:_see_again", "if as_of < row.last_seen_at and", "if False and"),
            Change(
                "reconciliation.entries:_see_again",
                "            same.filter(state=EntryState.PENDING).update(**said)\n        else:",
                "            same.update(state=state, **said)\n        else:",
            ),
        ),
    ),
    Bug(
        "nobody_is_asked",
        "It will turn up.",
        (
            Change("reconciliation.sweep:_ask_people", "unasked = ", "return 0\n    unasked = "),
            Change("reconciliation.rules:follow", "if situation.waited_too_long:", "if False:"),
            Change(
                "reconciliation.reviews.listening:_only_a_person_can_tell",
                "if intent.next_attempt_at is not None:",
                "if True:",
            ),
        ),
    ),
    Bug(
        "contradiction_unheard",
        "It is settled.",
        (Change("reconciliation.aftermath:after_the_end", "opening.dispute(intent, check=check, now=now)", "pass"),),
    ),
)
