"""The tools: names, descriptions, honest annotations, schemas."""

from dataclasses import dataclass
from typing import Any, Final

from mcp_types import Tool, ToolAnnotations

from landed_client.mcp.answers import ActionList, Answer
from landed_client.mcp.arguments import Arguments, Listing, OneAction, Proposal, Waiting


@dataclass(frozen=True)
class Description:
    """One tool. `gives`: the class of its structured result."""

    name: str
    title: str
    text: str
    takes: type[Arguments]
    gives: type[Answer | ActionList]
    annotations: ToolAnnotations


# Only looks at Landed's own records: nothing outside is touched, and nothing is changed.
_READS: Final = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
# It makes something happen outside that can't be undone. Not idempotent: once settled, the same arguments may be a
# second action, unless host and step give it the same request key.
_ACTS: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
)
# Ends a record for ever, inside Landed; a second time it changes nothing.
_WITHDRAWS: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)

TOOLS: Final = {
    one.name: one
    for one in (
        Description(
            "propose_action",
            "Propose an action",
            "Records an action that changes something outside, such as a refund; Landed carries it out at most once. "
            "Call this once per action. The result may be that it is not known yet whether it happened, or that a "
            "person has to approve it: then read it by its id, and don't propose it again.",
            Proposal,
            Answer,
            _ACTS,
        ),
        Description("get_action", "Read an action", "Shows an action as it is now.", OneAction, Answer, _READS),
        Description(
            "wait_for_action",
            "Wait for an action",
            "Waits until an action is settled, or until the time is up: then it is shown as it is, still open, and "
            "that says nothing about whether it happened.",
            Waiting,
            Answer,
            _READS,
        ),
        Description(
            "list_unsettled",
            "List open actions",
            "Lists this agent's actions whose outcome is still open, newest first. Look here before you propose "
            "something that may have been proposed already.",
            Listing,
            ActionList,
            _READS,
        ),
        Description(
            "cancel_action",
            "Withdraw an action",
            "Withdraws an action that was never sent. What may have been sent can't be withdrawn.",
            OneAction,
            Answer,
            _WITHDRAWS,
        ),
    )
}


def _schema_of(model: type[Arguments | Answer | ActionList], *, output: bool) -> dict[str, Any]:
    return model.model_json_schema(mode="serialization" if output else "validation")


def listed() -> list[Tool]:
    return [
        Tool(
            name=one.name,
            title=one.title,
            description=one.text,
            input_schema=_schema_of(one.takes, output=False),
            output_schema=_schema_of(one.gives, output=True),
            annotations=one.annotations,
        )
        for one in TOOLS.values()
    ]
