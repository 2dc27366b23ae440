"""Bugs in recording, claiming, sending and saving."""

from tests.simulation.bugs.changing import Bug, Change

_SETTLED = ("confirmed", "failed")
_ANYTHING = ("confirmed", "failed", "unknown", "recorded")

BUGS = (
    Bug(
        "lease_requeues",
        "The worker is gone, so somebody else may send it.",
        (
            Change("actions.outcomes:expire_lease", "to=Status.UNKNOWN", "to=Status.RECORDED"),
            Change("actions.outcomes:expire_lease", "next_attempt_at=replay_at(found, now)", "next_attempt_at=now"),
        ),
        allows=(("clock", "submitted", "recorded"),),
    ),
    Bug(
        "lease_over_is_not_sent",
        "Nobody said that it was sent.",
        (Change("actions.outcomes:expire_lease", "result=Result.NO_ANSWER", "result=Result.NOT_SENT"),),
    ),
    Bug(
        "fence_not_checked",
        "An answer is an answer.",
        (
            Change("actions.outcomes:apply_outcome", " and attempt.fence == intent.fence", ""),
            Change("actions.outcomes:_move", "fence=attempt.fence,", ""),
        ),
    ),
    Bug(
        "guard_freed_on_unknown",
        "The order should not be blocked by what we know nothing of.",
        (
            Change(
                "actions.transitions:_what_follows",
                "if to is Status.UNKNOWN:",
                'if to is Status.UNKNOWN:\n        changes["guard_key"] = None',
            ),
            Change("actions.subjects:_open", " | maybe_sent", ""),
        ),
    ),
    Bug(
        "parts_do_not_block",
        "A line is another thing than its order.",
        (
            Change(
                "actions.subjects:related",
                'one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")',
                "one == other",
            ),
        ),
    ),
    Bug(
        "key_per_attempt",
        "Every request gets a key of its own.",
        (
            Change(
                "actions.handing:wanted_of",
                "idempotency_key=intent.idempotency_key",
                'idempotency_key=f"{intent.idempotency_key}-{intent.fence}"',
            ),
        ),
    ),
    Bug(
        "error_is_refusal",
        "They answered 500: it did not work.",
        (
            Change(
                "actions.connectors.base:classify",
                "if reply.status in refused:",
                "if reply.status in refused or reply.status >= 500:",
            ),
        ),
    ),
    Bug(
        "timeout_is_not_sent",
        "No answer came, so try again.",
        (Change("actions.connectors.base:classify", "if not reply.maybe_sent:", "if not reply.complete:"),),
    ),
    Bug(
        "pending_is_done",
        "They took it.",
        (
            Change(
                "actions.connectors.http_json.answer:_state",
                '("pending", Result.ACCEPTED, "accepted")',
                '("pending", Result.CONFIRMED, "confirmed")',
            ),
        ),
    ),
    Bug(
        "echo_not_compared",
        "It says 200.",
        (Change("actions.connectors.http_json.answer:_judge", " if differs else ", " if not external_id else "),),
    ),
    Bug(
        "replay_after_window",
        "The key is the same.",
        (
            Change(
                "actions.replays:last_moment",
                "return until - timedelta(milliseconds=deadline_ms)",
                "return until + timedelta(days=1)",
            ),
        ),
    ),
    Bug(
        "replay_refused_fails",
        "The newest answer counts: 401.",
        (Change("actions.outcomes:what_follows", "results = [own.value, *others]", "results = [own.value]"),),
    ),
    Bug(
        "stopped_worker_sends",
        "Once claimed it may be sent.",
        (
            Change(
                "actions.claiming:_claim_one",
                "send_by=started + min(margin_s * 0.8, (until - now).total_seconds() if until else margin_s)",
                "send_by=None",
            ),
        ),
    ),
    Bug(
        "claim_without_compare",
        "It was due a moment ago.",
        (
            Change("actions.claiming:claim", "    with transaction.atomic():", "    if True:"),
            Change("actions.claiming:_submit", "expected=Status(intent.status)", "expected=list(Status)"),
            Change("actions.claiming:_submit", "fence=intent.fence,\n", "\n"),
            # What the database refuses (a second open attempt) is left as it is, so that the rest shows.
            Change("actions.claiming:_claim_or_put_off", "log.exception(", "log.info("),
            Change("actions.claiming:_claim_or_put_off", "transitions.note(intent.pk, now=now, ", "dict("),
        ),
        allows=tuple(("worker", was, "submitted") for was in ("submitted", "held", *_SETTLED)),
    ),
    Bug(
        "history_after_commit",
        "First the work, then the log.",
        (
            Change(
                "actions.transitions:apply",
                "row.save(force_insert=True)",
                "transaction.on_commit(lambda: row.save(force_insert=True))",
            ),
        ),
    ),
    Bug(
        "keys_of_all_agents",
        "A request key is unique.",
        (Change("actions.recording:_replay", "agent=agent, request_key=request_key", "request_key=request_key"),),
    ),
    Bug(
        "payload_not_compared",
        "Same key, same request.",
        (
            Change(
                "actions.recording:_replay",
                "if differs := _payload_differs(proposal, intent):",
                "if differs := ():",
            ),
        ),
    ),
    # Mostly the database stands in its way (transition_in_table, intent_settled_has_time), and then that is what is
    # seen: the worker's IntegrityError. Between confirmed and failed it would go through.
    Bug(
        "late_answer_moves_settled",
        "What the downstream says is true.",
        (
            Change(
                "actions.outcomes:apply_outcome",
                "intent.status in (Status.SUBMITTED, Status.UNKNOWN)",
                "intent.status != Status.CANCELLED",
            ),
            Change("actions.outcomes:_move", "expected=(Status.SUBMITTED, Status.UNKNOWN)", "expected=list(Status)"),
        ),
        allows=tuple(("worker", was, to) for was in _SETTLED for to in _ANYTHING if was != to),
    ),
)
