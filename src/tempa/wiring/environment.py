"""Settings in the environment: which variable sets what, and which sets nothing."""

from __future__ import annotations

import difflib
import json
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from tempa.core import crash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PREFIX = "TEMPA_"
ENGINE_GROUP = "tempa.engines"
_TESTS = "TEMPA_TEST_"  # said to the tests, whose servers inherit them
# By the client and by commands, which are told so where they are documented; they set nothing here.
READ_ELSEWHERE = frozenset({"TEMPA_URL", "TEMPA_API_KEY", "TEMPA_WEBHOOK_SECRET"})


def installed_engines() -> list[str]:
    """The names of the group `tempa.engines`, whether they can be loaded or not."""
    return sorted({entry.name for entry in entry_points(group=ENGINE_GROUP)})


def variable_of(name: str) -> str:
    """`server.port` -> `TEMPA_SERVER__PORT`. Variables have no hyphens: they become underscores."""
    return PREFIX + name.replace(".", "__").replace("-", "_").upper()


def nearest(name: str, known: Iterable[str]) -> str | None:
    """What was probably meant, if anything comes near."""
    return next(iter(difflib.get_close_matches(name, [*known], n=1)), None)


def environment_layers(environment: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """One layer a variable `TEMPA_<SECTION>__<KEY>`: its name, and the dotted name with its value."""
    for variable in sorted(environment):
        if variable.startswith(PREFIX) and "__" in variable:
            section, *rest = variable.removeprefix(PREFIX).lower().split("__")
            if section == "engines":
                rest[0] = _engine(rest[0])
            yield variable, {".".join([section, *rest]): _decode(environment[variable])}


def strays(environment: Mapping[str, str]) -> list[str]:
    """Variables that look like ours and are read by nobody: `TEMPA_SERVER_PORT`, say."""
    ours = (name for name in sorted(environment) if name.startswith(PREFIX) and not name.startswith(_TESTS))
    read = READ_ELSEWHERE | {crash.VARIABLE}  # by the process itself, for tests: see core/crash.py
    return [name for name in ours if "__" not in name and name not in read]


def _engine(part: str) -> str:
    by_variable = {name.replace("-", "_").lower(): name for name in installed_engines()}
    return by_variable.get(part, part.replace("_", "-"))


def _decode(text: str) -> Any:
    """Lists and tables are JSON; everything else is text, for the model to read."""
    if text[:1] in {"[", "{"}:
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return text
    return text
