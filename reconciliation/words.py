"""The closed lists of reconciliation: entries, verdicts, reasons, choices. Pure: no models, no I/O."""

from django.db.models import TextChoices


class EntryRole(TextChoices):
    EFFECT = "effect", "effect"
    REVERSAL = "reversal", "reversal"
    FEE = "fee", "fee"
    OTHER = "unknown", "unknown type"


class EntryState(TextChoices):
    PENDING = "pending", "pending"
    FINAL = "final", "final"
    FAILED = "failed", "failed"


class MatchRole(TextChoices):
    SETTLES = "settles", "settles it"
    DUPLICATE = "duplicate", "a duplicate of it"
    NOT_OURS = "not_ours", "not ours"
    KNOWN = "known", "known, and changes nothing"


class LeftToDo(TextChoices):
    """What is left to do about money after a decision."""

    RECOVER = "recover", "money to recover"
    SEND = "send", "still to send"
    COMPARE = "compare", "other currency: compare"


class Verdict(TextChoices):
    MATCH = "match", "the ledger shows it"
    PENDING = "pending", "the ledger shows it as pending"
    PARTIAL = "partial", "the ledger shows less"
    MISMATCH = "mismatch", "the ledger shows something else"
    AMBIGUOUS = "ambiguous", "several entries could be it"
    DUPLICATE = "duplicate", "the ledger shows it more than once"
    ABSENT = "absent", "not in the ledger"
    TOO_EARLY = "too_early", "not in the ledger yet; too early to tell"
    UNAVAILABLE = "unavailable", "the ledger can't be read"


class Purpose(TextChoices):
    APPROVAL = "approval", "approval"  # before sending: may it be sent?
    OUTCOME = "outcome", "outcome"  # after sending: did it happen?
    ENTRY = "entry", "entry"  # an entry that no intent explains


class ReasonCode(TextChoices):
    """Why a case is in the queue."""

    APPROVAL = "approval", "needs approval"
    DUPLICATE_PROPOSAL = "duplicate_proposal", "the order has an open one"
    LOOK_ALIKE = "look_alike", "looks like one already done"
    HIGH_VALUE = "high_value", "high value"
    STILL_UNKNOWN = "still_unknown", "still unknown"
    PARTIAL = "partial", "ledger shows less"
    MISMATCH = "mismatch", "ledger shows something else"
    AMBIGUOUS = "ambiguous", "several candidates in the ledger"
    DUPLICATE = "duplicate", "ledger shows it twice"
    STOPPED = "stopped", "a stop applies to it"
    OBJECTED = "objected", "something speaks against sending it"
    CONTRADICTION = "contradiction", "new facts contradict it"
    CORRECTION = "correction", "correction asked for"
    ORPHAN = "orphan", "no intent explains it"
    REQUESTED = "requested", "asked for by a person"


class Choice(TextChoices):
    """What a person can decide."""

    CONFIRM = "confirm", "Confirm: it happened"
    FAIL = "fail", "Fail: it did not happen"
    SEND_AGAIN = "send_again", "Send again with the same key"
    APPROVE = "approve", "Approve: send it"
    REJECT = "reject", "Reject: don't send it"
    UPHOLD = "uphold", "Uphold: it stays as it is"
    CORRECT = "correct", "Correct: it was the other way"
    LINK = "link", "Link the entry to an intent"
    DUPLICATE = "duplicate", "Mark the entry as a duplicate"
    NOT_OURS = "not_ours", "Mark the entry as not ours"
    # Rows that speak of an earlier one
    UNDO = "undo", "Undo"
    VOID = "void", "Void"
    EFFECT = "effect", "Takes effect"


class ClosedHow(TextChoices):
    DECISION = "decision", "a person decided"
    EVIDENCE = "resolved_by_evidence", "evidence settled it"
    WITHDRAWN = "withdrawn", "the intent was withdrawn or expired"


class DecisionReason(TextChoices):
    LEDGER = "ledger", "The ledger shows it"
    LEDGER_ABSENT = "ledger_absent", "The ledger does not show it"
    PROVIDER_SAYS = "provider_says", "The provider told us"
    CUSTOMER_SAYS = "customer_says", "The customer showed it"
    BANK_STATEMENT = "bank_statement", "A bank statement shows it"
    JUSTIFIED = "justified", "Justified and within policy"
    NOT_JUSTIFIED = "not_justified", "Not justified"
    SUSPECTED_FRAUD = "suspected_fraud", "Suspected fraud"
    MISTAKE = "mistake", "An earlier decision was wrong"
    OTHER = "other", "Other: see the note"


class IncidentKind(TextChoices):
    SENDING = "sending", "no answers to sendings"
    BOOKS = "books", "books can't be read"
    AGENT = "agent", "an agent was stopped"


class WaitsFor(TextChoices):
    """Whose answer a case waits for."""

    PROVIDER = "provider", "the provider"
    BANK = "bank", "the bank"
    CUSTOMER = "customer", "the customer"
    COLLEAGUE = "colleague", "a colleague"
    OTHER = "other", "somebody else"


class CommentKind(TextChoices):
    """What a person did with a case, short of deciding it. A plain comment has none."""

    OPENED = "opened", "opened the case"
    WAITING = "waiting", "put it aside to wait"
    RESUMED = "resumed", "took it up again"
    HANDED = "handed", "handed it over"
    TAKEN = "taken", "took it over"
    ATTACHED = "attached", "added a file"
    ERASED = "erased", "erased a file"
    RAISED = "raised", "said that the customer waits"


class ErasedFor(TextChoices):
    """Why a file was erased: in fixed words, as what is erased about people must not come back as a reason."""

    NOT_NEEDED = "not_needed", "It holds more about people than the case needs"
    ASKED = "asked", "The person it is about asked for it"
    WRONG_FILE = "wrong_file", "It was added by mistake"
    TIME_IS_OVER = "time_is_over", "The time to keep it is over"


class AfterDeciding(TextChoices):
    """Where a decision leads the person who made it."""

    STAY = "stay", "Stay on the case"
    NEXT = "next", "Take the next case"
    QUEUE = "queue", "Back to the queue"


class Theme(TextChoices):
    SYSTEM = "system", "As the system"
    LIGHT = "light", "Light"
    DARK = "dark", "Dark"


class NoticeKind(TextChoices):
    """What people are told of by e-mail."""

    HIGH_VALUE = "high_value", "a new high-value case"
    DUE_SOON = "due_soon", "a case is due soon"
    OVERDUE = "overdue", "a case is overdue"
    ESCALATED = "escalated", "a case is long overdue"
    HANDED = "handed", "a case was handed to you"
    VOTE_AGAIN = "vote_again", "your first vote does not count any more"
    INCIDENT = "incident", "an incident"
