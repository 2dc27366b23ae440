"""What each tool takes. An argument that there is not is refused: a model that meant it would get something else."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

# Below the minute after which most hosts give up on a call.
LONGEST_WAIT_S: Final = 50.0
LONGEST_WAIT_OF_PROPOSAL_S: Final = 20.0

_Id = Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{1,64}$", description="The id of the action, `intent.id`.")]


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Proposal(Arguments):
    kind: str = Field(min_length=1, max_length=100, description="What sort of action, such as `refund`.")
    subject: str | None = Field(
        default=None, max_length=1000, description="The one thing acted on, such as `order-4812`."
    )
    amount: str | int | None = Field(
        default=None, description='A decimal text such as "50.00", in `currency`; never a number with a point.'
    )
    currency: str | None = Field(default=None, max_length=10, description="ISO 4217, such as `EUR`.")
    params: dict[str, Any] | None = Field(default=None, description="What else this kind needs.")
    note: str = Field(default="", max_length=10_000, description="Why; read by the people who decide.")
    repeat_of: str | None = Field(
        default=None,
        pattern=r"^[0-9A-Za-z-]{1,64}$",
        description="The id of an earlier action, if a second one is meant. Shown to people; no permission.",
    )
    wait_s: float = Field(
        default=10.0,
        ge=0,
        description=f"Seconds to wait for the outcome, at most {LONGEST_WAIT_OF_PROPOSAL_S:.0f}.",
    )
    request_key: str | None = Field(
        default=None,
        pattern=r"^[\x21-\x7e]{1,200}$",
        description=(
            "Leave it out, unless an earlier result gave you one for this very proposal. It protects from nothing: "
            "what keeps an action from happening twice is kept elsewhere."
        ),
    )


class OneAction(Arguments):
    intent_id: _Id


class Waiting(Arguments):
    intent_id: _Id
    wait_s: float = Field(
        default=25.0, ge=0, description=f"Seconds to wait, at most {LONGEST_WAIT_S:.0f}; longer is cut to that."
    )


class Listing(Arguments):
    kind: str | None = Field(default=None, max_length=100, description="Only actions of this kind.")
    subject: str | None = Field(default=None, max_length=1000, description="Only actions on this subject.")
    limit: int = Field(default=20, ge=1, le=50)
    cursor: str | None = Field(default=None, max_length=1000, description="`next_cursor` of the page before.")
