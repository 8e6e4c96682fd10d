"""Settings in layers: the default file, a config file, the environment, flags.

Layering is done here rather than by a settings library because `tempa doctor` shows for every
value where it came from, and because importing one costs half a second at each start.
"""

from __future__ import annotations

import os
import tomllib
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, PrivateAttr, ValidationError

from tempa.core.limits import Limits
from tempa.wiring.chain_settings import PAYMENT_SOURCES, Payments, Solana
from tempa.wiring.environment import (
    PREFIX,
    environment_layers,
    installed_engines,
    nearest,
    strays,
    variable_of,
)
from tempa.wiring.section import Section

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SECRET_SETTINGS = frozenset(
    {"links.key"}
    | {f"payments.{source}.{name}" for source in PAYMENT_SOURCES for name in ("secret", "previous_secret")}
)
# A password may be in them; of a node's URL any part may be the key.
URL_SETTINGS = frozenset({"store.url", "store.listen_url", "payments.guard_url"})
NODE_SETTINGS = frozenset({"solana.rpc_urls", "solana.ws_url", "solana.geyser_url"})
DEFAULT_FILE = "tempa.default.toml"


class SettingsError(Exception):
    """The settings cannot be used; each line says which one, why, and where it came from."""


class Server(Section):
    """Where requests are served."""

    host: str
    port: int = Field(ge=0, le=65535)
    public_url: str = Field(pattern=r"^(https?://[^\s?#]+)?$")
    cors_origins: tuple[str, ...]
    drain_seconds: float = Field(ge=0, le=600)
    connections_max: int = Field(ge=16, le=1_000_000)


class Store(Section):
    """The database."""

    url: str = Field(pattern=r"^(sqlite:///.+|postgres(ql)?://.+)?$")
    listen_url: str = Field(pattern=r"^(postgres(ql)?://.+)?$")

    @property
    def shared(self) -> bool:
        """Whether several processes may use it at once."""
        return self.url.startswith("postgres")


class Queue(Section):
    """How workers hear of jobs."""

    url: Literal["store:"]


class Artifacts(Section):
    """Where files lie."""

    url: str = Field(pattern=r"^(file:///.+)?$")


class Jobs(Section):
    """Leases, retries, retention."""

    lease_seconds: float = Field(ge=1, le=3600)
    beat_seconds: float = Field(gt=0, le=600)
    retention_days: float = Field(gt=0, le=36_500)
    max_crash_retries: int = Field(ge=0, le=10)
    file_retention_days: float = Field(gt=0, le=36_500)
    rows_kept_days: float = Field(ge=0, le=36_500)


class Worker(Section):
    """How much runs at once."""

    slots: int = Field(ge=0, le=1024)


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError("must be an absolute path")
    return path


class EngineSettings(Section):
    """One engine's switches; what is absent keeps the engine's own default.

    `python` is the interpreter of an engine that runs in one of its own (its packages may not get on
    with ours); one that runs in forks of this process's interpreter refuses it. `options` are what only that
    engine knows of.
    """

    enabled: bool = True
    timeout_seconds: float | None = Field(None, gt=0, le=86_400)
    memory_bytes: int | None = Field(None, ge=64 * 1024 * 1024)
    python: Annotated[str, AfterValidator(_absolute)] | None = None
    options: dict[str, Any] | None = None


def _network(text: str) -> str:
    ip_network(text)
    return text


class Webhooks(Section):
    """Delivery."""

    max_retries: int = Field(ge=0, le=50)
    backoff_base_seconds: float = Field(ge=0, le=3600)
    backoff_cap_seconds: float = Field(ge=0, le=86_400)
    timeout_seconds: float = Field(gt=0, le=30)
    in_flight_max: int = Field(ge=1, le=8192)
    parked_hours: float = Field(gt=0, le=8760)
    payload_days: float = Field(gt=0, le=36_500)
    attempts_days: float = Field(gt=0, le=36_500)
    allow_networks: tuple[Annotated[str, AfterValidator(_network)], ...]
    allow_http: bool


class LinkSettings(Section):
    """Links to results."""

    ttl_seconds: int = Field(ge=1, le=604_800)
    key: str = Field(pattern=r"^([0-9a-fA-F]{2}){32,}$|^$")


class Log(Section):
    """Log lines."""

    level: Literal["debug", "info", "warning", "error"]
    format: Literal["auto", "json", "text"]


class Settings(Section):
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
    solana: Solana
    payments: Payments
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
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    layers = [
        ("default", _flatten(tomllib.loads(default_text()))),
        *([(str(config), _flatten(_read(config)))] if config else []),
        *environment_layers(environment),
        ("flag", dict(flags or {})),
    ]
    for source, layer in layers:
        for name, value in layer.items():
            values[name] = value
            sources[name] = source
    return _validate(values, sources, strays(environment))


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
    """`{"server": {"port": 1}}` -> `{"server.port": 1}`; engines and some sections have one level more."""
    flat: dict[str, Any] = {}
    for section, content in document.items():
        if not isinstance(content, dict):
            flat[section] = content
            continue
        for key, value in content.items():
            if isinstance(value, dict) and (section == "engines" or key in _subsections(section)):
                flat |= {f"{section}.{key}.{inner}": told for inner, told in value.items()}
            else:
                flat[f"{section}.{key}"] = value
    return flat


def _subsections(section: str) -> Mapping[str, type[BaseModel]]:
    """The sections within a section, by name: `payments.helius`, say."""
    field = Settings.model_fields.get(section)
    model = field.annotation if field is not None else None
    if not (isinstance(model, type) and issubclass(model, Section)):
        return {}
    inner = {name: each.annotation for name, each in model.model_fields.items()}
    return {
        name: kind for name, kind in inner.items() if isinstance(kind, type) and issubclass(kind, Section)
    }


def _validate(values: Mapping[str, Any], sources: dict[str, str], unread: Sequence[str]) -> Settings:
    faults = [*_explain_strays(unread), *_unknown_engines(values, sources)]
    try:
        settings = Settings.model_validate(_tree(values))
    except ValidationError as error:
        raise SettingsError("\n".join([*faults, *_explain(error, sources)])) from None
    if settings.jobs.beat_seconds * 2 > settings.jobs.lease_seconds:
        faults.append(
            "jobs.beat_seconds must be at most half of jobs.lease_seconds: one lost beat must not lose a job"
        )
    if faults:
        raise SettingsError("\n".join(faults))
    settings._sources.update(sources)  # noqa: SLF001 - our own class
    return settings


def _tree(values: Mapping[str, Any]) -> dict[str, Any]:
    """The sections as tables again."""
    tree: dict[str, Any] = {section: {} for section in Settings.model_fields}
    for name, value in values.items():
        section, _, rest = name.partition(".")
        parts = [section, *(rest.rsplit(".", 1) if _is_deeper(section, rest) else [rest] if rest else [])]
        node = tree
        for part in parts[:-1]:
            node = node.setdefault(part, {})
        node[parts[-1]] = value
    return tree


def _is_deeper(section: str, rest: str) -> bool:
    return section == "engines" or rest.partition(".")[0] in _subsections(section)


def _known_names() -> list[str]:
    """Every setting there is, by its dotted name."""
    names = []
    for section, field in Settings.model_fields.items():
        if section == "engines":
            engines = installed_engines()
            names += [f"engines.{name}.{key}" for name in engines for key in EngineSettings.model_fields]
        else:
            assert isinstance(field.annotation, type)
            assert issubclass(field.annotation, BaseModel)
            inner = _subsections(section)
            names += [f"{section}.{key}" for key in field.annotation.model_fields if key not in inner]
            names += [f"{section}.{key}.{name}" for key, kind in inner.items() for name in kind.model_fields]
    return names


def _explain_strays(unread: Sequence[str]) -> Iterator[str]:
    for name in unread:
        yield f"{name}: {_unknown(name, name)} [from the environment]"


def _unknown_engines(values: Mapping[str, Any], sources: Mapping[str, str]) -> Iterator[str]:
    set_by = {name.split(".")[1]: sources[name] for name in values if name.startswith("engines.")}
    if not set_by:
        return
    installed = installed_engines()
    for engine, source in set_by.items():
        if engine not in installed:
            offered = ", ".join(installed) or "none"
            yield f"engines.{engine}: there is no such engine; installed: {offered} [from {source}]"


def _explain(error: ValidationError, sources: Mapping[str, str]) -> Iterator[str]:
    for entry in error.errors(include_url=False):
        name = ".".join(str(part) for part in entry["loc"])
        known = next((key for key in sources if _same_branch(key, name)), name)
        source = sources.get(known, "default")
        what = _unknown(name, source) if entry["type"] == "extra_forbidden" else entry["msg"]
        yield f"{name}: {what} [from {source}]"


def _unknown(name: str, source: str) -> str:
    known = _known_names()
    if source.startswith(PREFIX):
        return "is no setting" + _meant(nearest(source, map(variable_of, known)))
    return "is no setting" + _meant(nearest(name, known))


def _meant(name: str | None) -> str:
    return f"; did you mean {name}?" if name else "; tempa.default.toml has all of them"


def _same_branch(one: str, other: str) -> bool:
    """Whether one dotted name lies in the other: a list's element, or a section's key."""
    return one == other or one.startswith(other + ".") or other.startswith(one + ".")
