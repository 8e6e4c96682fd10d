"""Settings in layers: the default file, a config file, the environment, flags.

Layering is done here rather than by a settings library because `tempa doctor` shows for every
value where it came from, and because importing one costs half a second at each start.
"""

from __future__ import annotations

import json
import os
import tomllib
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from tempa.core.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

SECRET_SETTINGS = frozenset({"links.key"})
DEFAULT_FILE = "tempa.default.toml"


class SettingsError(Exception):
    """The settings cannot be used; each line says which one, why, and where it came from."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Server(_Section):
    """Where requests are served."""

    host: str
    port: int = Field(ge=0, le=65535)
    public_url: str
    cors_origins: tuple[str, ...]
    drain_seconds: float = Field(ge=0, le=600)


class Store(_Section):
    """The database."""

    url: str = Field(pattern=r"^(sqlite:///.+)?$")


class Queue(_Section):
    """How workers hear of jobs."""

    url: Literal["store:"]


class Artifacts(_Section):
    """Where files lie."""

    url: str = Field(pattern=r"^(file:///.+)?$")


class Jobs(_Section):
    """Leases, retries, retention."""

    lease_seconds: float = Field(ge=1, le=3600)
    beat_seconds: float = Field(gt=0, le=600)
    retention_days: float = Field(gt=0, le=36_500)
    max_crash_retries: int = Field(ge=0, le=10)
    file_retention_days: float = Field(gt=0, le=36_500)


class Worker(_Section):
    """How much runs at once."""

    slots: int = Field(ge=0, le=1024)


class EngineSettings(_Section):
    """One engine's switches; what is absent keeps the engine's own default."""

    enabled: bool = True
    timeout_seconds: float | None = Field(None, gt=0, le=86_400)
    memory_bytes: int | None = Field(None, ge=64 * 1024 * 1024)


def _network(text: str) -> str:
    ip_network(text)
    return text


class Webhooks(_Section):
    """Delivery."""

    max_retries: int = Field(ge=0, le=50)
    backoff_base_seconds: float = Field(ge=0, le=3600)
    backoff_cap_seconds: float = Field(ge=0, le=86_400)
    timeout_seconds: float = Field(gt=0, le=30)
    in_flight_max: int = Field(ge=1, le=1024)
    allow_networks: tuple[Annotated[str, AfterValidator(_network)], ...]
    allow_http: bool


class LinkSettings(_Section):
    """Links to results."""

    ttl_seconds: int = Field(ge=1, le=604_800)
    key: str = Field(pattern=r"^([0-9a-fA-F]{2}){32,}$|^$")


class Log(_Section):
    """Log lines."""

    level: Literal["debug", "info", "warning", "error"]
    format: Literal["auto", "json", "text"]


class Settings(_Section):
    """Every setting. `sources` says where each came from, by dotted name."""

    server: Server
    store: Store
    queue: Queue
    artifacts: Artifacts
    jobs: Jobs
    worker: Worker
    engines: dict[str, EngineSettings]
    webhooks: Webhooks
    links: LinkSettings
    limits: Limits
    log: Log
    _sources: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def sources(self) -> Mapping[str, str]:
        """Dotted name -> `default`, the config file's path, an environment name, or `flag`."""
        return self._sources


def load_settings(
    config: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Read all layers. Raises `SettingsError` naming every setting that cannot be used."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    layers = [
        ("default", _flatten(tomllib.loads(default_text()))),
        *([(str(config), _flatten(_read(config)))] if config else []),
        *_environment(os.environ if environment is None else environment),
        ("flag", dict(flags or {})),
    ]
    for source, layer in layers:
        for name, value in layer.items():
            values[name] = value
            sources[name] = source
    return _validate(values, sources)


def default_text() -> str:
    """The default file: packaged beside this package, or at the root of a source checkout."""
    package = Path(__file__).parent.parent
    for place in (package / DEFAULT_FILE, package.parent.parent / DEFAULT_FILE):
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise SettingsError(f"{DEFAULT_FILE} is missing from the installation; install Tempa again")


def _read(config: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{config} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{config} is not valid TOML: {error}") from None


def _flatten(document: Mapping[str, Any]) -> dict[str, Any]:
    """`{"server": {"port": 1}}` -> `{"server.port": 1}`; engines have one level more."""
    flat: dict[str, Any] = {}
    for section, content in document.items():
        if section == "engines" and isinstance(content, dict):
            for engine, switches in content.items():
                if isinstance(switches, dict):
                    flat |= {f"engines.{engine}.{key}": value for key, value in switches.items()}
                else:
                    flat[f"engines.{engine}"] = switches
        elif isinstance(content, dict):
            flat |= {f"{section}.{key}": value for key, value in content.items()}
        else:
            flat[section] = content
    return flat


def _environment(environment: Mapping[str, str]) -> list[tuple[str, dict[str, Any]]]:
    layers = []
    for name in sorted(environment):
        if name.startswith("TEMPA_") and "__" in name:
            parts = name.removeprefix("TEMPA_").lower().split("__")
            if parts[0] == "engines":  # environment names have no hyphens, engines have
                parts[1:2] = [parts[1].replace("_", "-")]
            layers.append((name, {".".join(parts): _decode(environment[name])}))
    return layers


def _decode(text: str) -> Any:
    """Lists and tables are JSON; everything else is text, for the model to read."""
    if text[:1] in {"[", "{"}:
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return text
    return text


def _validate(values: Mapping[str, Any], sources: dict[str, str]) -> Settings:
    tree: dict[str, Any] = {section: {} for section in Settings.model_fields}
    for name, value in values.items():
        section, _, rest = name.partition(".")
        parts = [section, *(rest.rsplit(".", 1) if section == "engines" else [rest] if rest else [])]
        node = tree
        for part in parts[:-1]:
            node = node.setdefault(part, {})
        node[parts[-1]] = value
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        raise SettingsError(_explain(error, sources)) from None
    if settings.jobs.beat_seconds * 2 > settings.jobs.lease_seconds:
        raise SettingsError(
            "jobs.beat_seconds must be at most half of jobs.lease_seconds: one lost beat must not lose a job"
        )
    settings._sources.update(sources)  # noqa: SLF001 - our own class
    return settings


def _same_branch(one: str, other: str) -> bool:
    """Whether one dotted name lies in the other: a list's element, or a section's key."""
    return one == other or one.startswith(other + ".") or other.startswith(one + ".")


def _explain(error: ValidationError, sources: Mapping[str, str]) -> str:
    lines = []
    for entry in error.errors(include_url=False):
        name = ".".join(str(part) for part in entry["loc"])
        known = next((key for key in sources if _same_branch(key, name)), name)
        unknown = entry["type"] == "extra_forbidden"
        what = "is no setting (see tempa.default.toml)" if unknown else entry["msg"]
        lines.append(f"{name}: {what} [from {sources.get(known, 'default')}]")
    return "\n".join(lines)
