"""What the invariants ask the database. In words of its own, not through the product's models: what is asked must not
be what answers."""

from tests.simulation.policies import REVIEW_AFTER_S

# May have been sent, and nobody was asked about it; or is about to be sent.
HANGING = """
SELECT * FROM actions_intent i
WHERE (i.status IN ('submitted', 'unknown') AND NOT EXISTS (
        SELECT 1 FROM reconciliation_review r WHERE r.intent_id = i.id AND r.closed_at IS NULL))
    OR (i.status = 'recorded' AND i.next_attempt_at IS NOT NULL AND (i.guard_key IS NOT NULL OR i.guard_waived))
"""

# Settled, and to be looked at again.
LATER = "SELECT * FROM actions_intent WHERE status IN ('confirmed', 'failed') AND next_check_at IS NOT NULL"

# Decisions in their undo window.
WAITING = """
SELECT * FROM reconciliation_decision d
WHERE d.takes_effect_at IS NOT NULL AND d.choice NOT IN ('effect', 'undo', 'void')
    AND NOT EXISTS (SELECT 1 FROM reconciliation_decision o WHERE o.about_id = d.id)
"""

# Whether the clock, a worker or a checker finds something to do at ?1.
TICK = f"""
SELECT 1 FROM actions_intent
WHERE lease_until < ?1 OR approve_before < ?1 OR (status IN ('held', 'recorded') AND send_before < ?1)
    OR (status = 'unknown' AND next_attempt_at IS NOT NULL AND send_before <= ?1)
    OR (status = 'unknown' AND next_attempt_at IS NULL AND next_check_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM reconciliation_review r WHERE r.intent_id = actions_intent.id AND r.closed_at IS NULL))
    OR (status IN ('submitted', 'unknown') AND lease_until IS NULL
        AND julianday(COALESCE(first_maybe_sent_at, status_since)) < julianday(?1) - {REVIEW_AFTER_S + 299} / 86400.0)
UNION SELECT 1 FROM reconciliation_decision WHERE takes_effect_at <= ?1
"""
WORK = "SELECT 1 FROM actions_intent WHERE next_attempt_at <= ?1"
CHECK = "SELECT 1 FROM actions_intent WHERE next_check_at <= ?1"

# The next time after ?1 that is written down.
NEXT = """
SELECT MIN(at) AS at FROM (
    SELECT MIN(lease_until) AS at FROM actions_intent WHERE lease_until > ?1
    UNION SELECT MIN(next_attempt_at) FROM actions_intent WHERE next_attempt_at > ?1
    UNION SELECT MIN(next_check_at) FROM actions_intent WHERE next_check_at > ?1
    UNION SELECT MIN(takes_effect_at) FROM reconciliation_decision WHERE takes_effect_at > ?1)
"""

# Entries that could be the intent's own: under its key, or without one and fitting, if they are nobody else's.
COULD_BE = """
SELECT * FROM reconciliation_ledgerentry e
WHERE e.downstream_id = :downstream_id AND e.role = 'effect' AND e.state != 'failed'
    AND (e.key = :idempotency_key OR (
        e.key = '' AND e.subject = :subject AND e.amount_minor = :amount_minor AND e.first_seen_at >= :sent_at
        AND NOT EXISTS (SELECT 1 FROM reconciliation_match m
            WHERE m.entry_id = e.id AND m.released_at IS NULL AND m.intent_id != :id)
        AND NOT EXISTS (SELECT 1 FROM actions_intent o WHERE o.external_id = e.entry_id AND o.id != :id)))
"""

COUNTED = """
SELECT * FROM reconciliation_check WHERE intent_id = ? AND fence = ? AND counts_as_absence ORDER BY id
"""

# Webhooks are no looks: they show what they tell of, where nobody may be able to look.
LOOKS = """
SELECT started_at FROM reconciliation_check WHERE intent_id = ? AND "by" NOT LIKE 'webhook:%' ORDER BY id
"""

LAST_TOLD = "SELECT intent_id, to_status, MAX(sequence) AS sequence FROM actions_transition GROUP BY intent_id"

TIED_TWICE = """
SELECT entry_id, COUNT(*) AS n FROM reconciliation_match WHERE released_at IS NULL GROUP BY 1 HAVING n > 1
UNION SELECT intent_id, COUNT(*) AS n FROM reconciliation_match
    WHERE released_at IS NULL AND role = 'settles' GROUP BY 1 HAVING n > 1
"""

SUMS_DIFFER = """
SELECT i.id, i.subject, i.settled_amount_minor, m.amount_minor
FROM actions_intent i JOIN reconciliation_match m ON m.intent_id = i.id
WHERE m.released_at IS NULL AND m.role = 'settles' AND i.status = 'confirmed' AND NOT i.disputed
    AND (i.settled_amount_minor, i.settled_currency) IS NOT (m.amount_minor, m.currency)
"""

# Settled, and the newest look since speaks against that.
CONTRADICTED = """
SELECT i.* FROM actions_intent i JOIN reconciliation_check c ON c.intent_id = i.id
WHERE NOT i.disputed AND c.at > i.settled_at
    AND c.position = (SELECT MAX(n.position) FROM reconciliation_check n WHERE n.intent_id = i.id)
    AND ((i.status = 'failed' AND c.verdict IN ('match', 'pending', 'partial', 'duplicate')
            AND NOT json_extract(c.grounds, '$.entry_failed'))
        OR (i.status = 'confirmed' AND c.verdict IN ('duplicate', 'partial', 'mismatch')))
    AND NOT EXISTS (SELECT 1 FROM reconciliation_review r WHERE r.intent_id = i.id AND r.closed_at IS NULL)
    AND NOT EXISTS (SELECT 1 FROM reconciliation_decision d
        WHERE d.intent_id = i.id AND d.choice = 'uphold' AND d.seen_digest = c.facts_digest)
"""

# Decisions about ?1 that took effect.
TOOK_EFFECT = """
SELECT d.*, EXISTS (SELECT 1 FROM reconciliation_decision u
    WHERE u.about_id = d.id AND u.choice IN ('undo', 'void')) AS undone
FROM reconciliation_decision e JOIN reconciliation_decision d ON d.id = e.about_id
WHERE e.choice = 'effect' AND (e.intent_id = ?1 OR d.linked_id = ?1) ORDER BY e.id
"""

NEWEST_FACTS = """
SELECT facts_digest FROM reconciliation_check
WHERE intent_id = ? AND verdict != 'unavailable' ORDER BY id DESC LIMIT 1
"""

# Entries under our keys whose intent is settled by something else, and about which nobody has or will get a question.
UNEXPLAINED = """
SELECT e.entry_id, i.id, i.subject, i.status
FROM reconciliation_ledgerentry e JOIN actions_intent i ON i.idempotency_key = e.key
WHERE e.role = 'effect' AND e.state != 'failed' AND e.explain_at IS NULL
    AND i.status NOT IN ('held', 'recorded', 'submitted', 'unknown') AND NOT i.disputed
    AND i.external_id != e.entry_id
    AND NOT EXISTS (SELECT 1 FROM reconciliation_match m WHERE m.entry_id = e.id AND m.released_at IS NULL)
    AND NOT EXISTS (SELECT 1 FROM reconciliation_review r
        WHERE r.closed_at IS NULL AND (r.entry_id = e.id OR r.intent_id = i.id))
"""

DISPUTED_ALONE = """
SELECT * FROM actions_intent i
WHERE i.disputed AND NOT EXISTS (
    SELECT 1 FROM reconciliation_review r WHERE r.intent_id = i.id AND r.closed_at IS NULL)
"""
