"""The shapes of what is asked: the bodies of requests."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

__all__ = ["Amendment", "Charge", "Choice", "Days", "Registration", "Trust"]


class Asked(BaseModel):
    """A body that holds nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Registration(Asked):
    """A team that wants to come in."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    invitation: Annotated[str | None, Field(max_length=100)] = None


class Days(Asked):
    """How long an invitation is good."""

    days: Annotated[float, Field(gt=0, le=366)] = 7


class Trust(Asked):
    """Whose token is wanted."""

    role: Literal["evaluator", "organiser"]


class Charge(Asked):
    """How many questions may have been answered since a copy was made that was put back."""

    charge: Annotated[int | None, Field(ge=0, le=2**53)] = None


class Choice(Asked):
    """Submissions for the finals."""

    submissions: Annotated[
        list[Annotated[str, Field(pattern="^[0-9a-f]{32}$")]], Field(max_length=100)
    ]


class Amendment(RootModel[dict[str, Any]]):
    """Keys of ``board.yaml`` that change, with their new values."""

    root: Annotated[dict[str, Any], Field(min_length=1, max_length=50)]
