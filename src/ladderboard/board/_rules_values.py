"""Single values of a board's rules: slugs, flags, sizes, paths, losses and mechanisms."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from pathlib import PurePosixPath
from typing import Any

from ladderboard import _settings
from ladderboard.board._rules_text import one_line
from ladderboard.errors import InvalidInput, InvalidSetting
from ladderboard.losses import Metric, loss, metric
from ladderboard.mechanisms import MECHANISMS, Mechanism
from ladderboard.mechanisms import mechanism as mechanism_of

__all__ = ["inside", "read_flag", "read_loss", "read_mechanism", "read_size", "read_slug"]

CALIBRATED = "calibrated"
_SLUG = r"[a-z0-9][a-z0-9-]{0,62}"
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([kmgt]i?b|b)", re.IGNORECASE | re.ASCII)
_POWERS = "bkmgt"
_LARGEST = 2**50


def read_slug(name: str, value: Any) -> str:
    """Return what stands for the board in addresses."""
    if isinstance(value, str) and re.fullmatch(_SLUG, value):
        return value
    raise InvalidSetting(
        f"{name} must be 1 to 63 letters a to z, digits and hyphens, and not begin with a hyphen; "
        f"got {_settings.shown(value)}."
    )


def read_flag(name: str, value: Any) -> bool:
    """Return true or false; other words for them mean something else to somebody."""
    if isinstance(value, bool):
        return value
    raise InvalidSetting(f"{name} must be true or false; got {_settings.shown(value)}.")


def read_size(name: str, value: Any) -> int:
    """Return a number of bytes: a whole number, or text with a unit.

    >>> read_size("bytes", "20 MB"), read_size("bytes", "1 GiB")
    (20000000, 1073741824)
    """
    if isinstance(value, str) and (found := _SIZE.fullmatch(value.strip())):
        unit = found[2].lower()
        size = float(found[1]) * (1024 if "i" in unit else 1000) ** _POWERS.index(unit[0])
        value = int(size) if size <= _LARGEST else value
    elif isinstance(value, str):
        raise InvalidSetting(
            f"{name} must be a number of bytes, such as 20000000 or 20 MB; "
            f"got {_settings.shown(value)}."
        )
    return _settings.whole(name, value, at_least=1, at_most=_LARGEST)


def inside(name: str, value: Any) -> str:
    """Return the path of a file inside the board's folder."""
    path = one_line(name, value, most=500)
    parts = PurePosixPath(path).parts
    if path.startswith("/") or "\\" in path or ":" in path or ".." in parts or not parts:
        raise InvalidSetting(
            f"{name} must be a file in the board's folder, such as baselines/mean.csv; "
            f"got {_settings.shown(value)}."
        )
    return str(PurePosixPath(path))


def read_loss(name: str, value: Any) -> Metric:
    """Return a loss, and how it is shown, from its name or from a mapping with its parameters."""
    word, params = _named(name, value, "accuracy")
    try:
        if word == "custom":
            return metric(loss({"loss": word, **params}))
        return metric(word, **params)
    except InvalidInput as error:
        raise InvalidSetting(f"{name}: {_in_yaml(str(error))}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module of somebody's, or its import
        raise InvalidSetting(
            f"{name}: {_settings.shown(word)} failed with {type(error).__name__}."
        ) from None


def _in_yaml(sentence: str) -> str:
    """Return a sentence in which a loss that it suggests is written as in board.yaml.

    >>> _in_yaml('It needs a range; try loss("squared", range=(0, 100)).')
    'It needs a range; try loss: {name: squared, range: [0, 100]}.'
    """

    def spelled(found: re.Match[str]) -> str:
        settings = found[2].replace("=", ": ").replace("(", "[").replace(")", "]")
        return f"loss: {{name: {found[1]}{settings}}}"

    return re.sub(r'\bloss\("(\w+)"((?:, \w+=\([^()]*\))*)\)', spelled, sentence)


def read_mechanism(name: str, value: Any) -> Mechanism | None:
    """Return a mechanism from its name, or from a mapping with its settings; None: calibrated."""
    word, params = _named(name, value, CALIBRATED)
    if word == CALIBRATED:
        if params:
            raise InvalidSetting(f"{name}: {CALIBRATED} takes no settings; they are measured.")
        return None
    kind = MECHANISMS.get(word)
    if kind is None:
        raise InvalidSetting(
            f"{name} must be {CALIBRATED}, {', '.join(MECHANISMS)}; got {_settings.shown(word)}."
        )
    if kind.needs_training:
        raise InvalidSetting(
            f"{name}: {word} needs a training loss with every question, and a submission has none."
        )
    known = {each.name: each.default is MISSING for each in fields(kind) if each.compare}
    lacking = [each for each, needed in known.items() if needed and each not in params]
    unknown = [each for each in params if each not in known]
    if lacking or unknown:
        there_is = f"it takes {', '.join(known)}" if known else "it takes no settings"
        said = f"needs {', '.join(lacking)}" if lacking else f"has no {_settings.shown(unknown[0])}"
        raise InvalidSetting(f"{name}: {word} {said}; {there_is}.")
    try:
        return mechanism_of({"mechanism": word, **params})
    except InvalidInput as error:
        raise InvalidSetting(f"{name}: {error}") from None


def _named(name: str, value: Any, example: str) -> tuple[str, dict[str, Any]]:
    """Return a name and settings, from a name alone or a mapping that has one."""
    params = dict(value) if isinstance(value, dict) else {"name": value}
    word = params.pop("name", None)
    if not isinstance(word, str) or not all(isinstance(each, str) for each in params):
        raise InvalidSetting(
            f"{name} must be a name, such as {example}, or a mapping with name and settings; "
            f"got {_settings.shown(value)}."
        )
    return word, params
