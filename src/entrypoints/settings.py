"""
What a server is told: flags, else `LEASEQ_*` of the environment, else defaults.

The only module that reads the environment. Each default is safe on a laptop; a bad
value stops the start and is named as the operator spelt it.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, Literal, TypeVar

import attrs

from ..domain.errors import InvalidArgumentError
from .durations import parse_duration, shown
from .urls import (
    DEFAULT_GRPC_PORT,
    DEFAULT_HTTP_PORT,
    Address,
    PostgresUrl,
    SqliteUrl,
    StorageUrl,
    parse_address,
    parse_pooler,
    parse_schema,
    parse_storage_url,
)

T = TypeVar("T")

LogFormat = Literal["auto", "text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

DEFAULT_STORAGE: Final = SqliteUrl(path=Path("leaseq.db"))
DEFAULT_GRPC: Final = Address(host="127.0.0.1", port=DEFAULT_GRPC_PORT)
DEFAULT_HTTP: Final = Address(host="127.0.0.1", port=DEFAULT_HTTP_PORT)
_PREFIX: Final = "LEASEQ_"
_YES: Final = frozenset({"1", "true", "yes", "on"})
_NO: Final = frozenset({"0", "false", "no", "off", ""})
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,253}")


class InvalidSettingError(Exception):
    """A setting has a value that nobody can start with. `str()` names it as it was spelt."""

    def __init__(self, spelling: str, why: str) -> None:
        self.spelling = spelling
        super().__init__(f"{spelling}: {why}")


@attrs.frozen(kw_only=True)
class Source:
    """One place where settings are looked up, by their names (`reaper-interval`)."""

    values: Mapping[str, str]
    spell: Callable[[str], str]
    """From a setting's name to what the operator wrote."""


def flags(values: Mapping[str, str | bool | None]) -> Source:
    """Return what was given on the command line; None is left out."""
    given = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in values.items()
        if value is not None
    }
    return Source(values=given, spell=lambda name: f"--{name}")


def environment(env: Mapping[str, str]) -> Source:
    """Return what `LEASEQ_*` variables say; an empty one counts as not set."""
    given = {
        name.removeprefix(_PREFIX).replace("_", "-").lower(): value
        for name, value in env.items()
        if name.startswith(_PREFIX) and value
    }
    return Source(values=given, spell=lambda name: _PREFIX + name.replace("-", "_").upper())


def unknown_variables(env: Mapping[str, str]) -> list[tuple[str, str]]:
    """
    Return the `LEASEQ_*` variables of `env` that nothing reads, each with the nearest known one.

    Passes over empty ones, and over `LEASEQ_TEST_*`, which belong to tests.
    """
    known = {_PREFIX + name.upper() for name in _known_names()}
    strangers = sorted(
        name
        for name, value in env.items()
        if value and name.startswith(_PREFIX) and not name.startswith(f"{_PREFIX}TEST_")
    )
    return [(name, _nearest(name, known)) for name in strangers if name not in known]


def process_environment() -> Mapping[str, str]:
    """Return the environment of this process."""
    return os.environ


def hush_grpc_core() -> None:
    """
    Keep the C library under grpc from writing to the standard error by itself.

    Every failure also reaches us as an error. Whoever sets GRPC_VERBOSITY hears all the
    same; it is read when grpc is first imported.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")


@attrs.frozen(kw_only=True)
class HttpWish:
    """Where to serve HTTP, and how much that matters."""

    address: Address | None = DEFAULT_HTTP
    """None: nowhere."""

    asked_for: bool = False
    """Whether the operator named it; else a server also starts where it cannot be had."""


@attrs.frozen(kw_only=True)
class ServerSettings:
    """Everything that `leaseq server` can be told."""

    storage: StorageUrl = DEFAULT_STORAGE
    grpc: Address = DEFAULT_GRPC
    http: HttpWish = HttpWish()
    http_hosts: tuple[str, ...] = ()
    """Names that the HTTP door answers to, beside those of loopback."""

    reaper_interval: timedelta = timedelta(seconds=5)
    """How often expired leases are looked for; 100 ms to 1 hour."""

    storage_wait: timedelta = timedelta(seconds=30)
    """How long a start waits for a storage that is away; 0 to 1 hour."""

    grace: timedelta = timedelta(seconds=8)
    """
    How long a stop may take; 0 to 1 hour. Less than the 10 seconds after which
    container engines kill.
    """

    insecure: bool = False
    reflection: bool = False
    log_level: LogLevel = "info"
    log_format: LogFormat = "auto"
    """auto: text on a terminal, else JSON."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> ServerSettings:
        """
        Return the settings that the environment `env` makes.

        Raises:
            InvalidSettingError: one is bad.
        """
        return cls.load(environment(env))

    @classmethod
    def load(cls, *sources: Source) -> ServerSettings:
        """
        Return the settings that `sources` make, the first that has a value winning.

        Raises:
            InvalidSettingError: one is bad, or they do not go together.
        """
        read = _Reader(sources)
        default = cls()
        log_level, log_format = log_settings(*sources)
        settings = cls(
            storage=_storage(read, default.storage),
            grpc=read.get("grpc", parse_address, default.grpc),
            http=read.get("http", _http, default.http),
            http_hosts=read.get("http-hosts", _host_names, default.http_hosts),
            reaper_interval=read.get(
                "reaper-interval", _span(timedelta(milliseconds=100)), default.reaper_interval
            ),
            storage_wait=read.get("storage-wait", _span(timedelta(0)), default.storage_wait),
            grace=read.get("grace", _span(timedelta(0)), default.grace),
            insecure=read.get("insecure", _switch, default.insecure),
            reflection=read.get("reflection", _switch, default.reflection),
            log_level=log_level,
            log_format=log_format,
        )
        _check_addresses(settings, read)
        return settings


def _known_names() -> set[str]:
    settings = {field.name for field in attrs.fields(ServerSettings)}
    # The first two belong to the storage, the third to the commands that are clients.
    return settings | {"schema", "pooler", "server"}


def _nearest(name: str, known: Iterable[str]) -> str:
    # Only who misspelt something should pay for the import.
    from difflib import get_close_matches  # noqa: PLC0415

    return get_close_matches(name, sorted(known), n=1, cutoff=0)[0]


def storage_settings(*sources: Source) -> StorageUrl:
    """
    Return the storage alone, for commands that need nothing else.

    Raises:
        InvalidSettingError: it is bad.
    """
    return _storage(_Reader(sources), DEFAULT_STORAGE)


def log_settings(*sources: Source) -> tuple[LogLevel, LogFormat]:
    """
    Return how to log, for commands that need nothing else.

    Raises:
        InvalidSettingError: it is bad.
    """
    read = _Reader(sources)
    default = ServerSettings()
    return (
        read.get("log-level", _log_level, default.log_level),
        read.get("log-format", _log_format, default.log_format),
    )


@attrs.frozen
class _Reader:
    sources: Sequence[Source]

    def get(self, name: str, parse: Callable[[str], T], default: T) -> T:
        for source in self.sources:
            if name in source.values:
                try:
                    return parse(source.values[name])
                except InvalidArgumentError as error:
                    why = "; ".join(violation.description for violation in error.violations)
                    raise InvalidSettingError(source.spell(name), why) from None
                except ValueError as error:
                    raise InvalidSettingError(source.spell(name), str(error)) from None
        return default

    def spelling(self, name: str) -> str:
        holders = (source for source in self.sources if name in source.values)
        return next((source.spell(name) for source in holders), f"--{name}")


def _storage(read: _Reader, default: StorageUrl) -> StorageUrl:
    url = read.get("storage", parse_storage_url, default)
    schema = read.get("schema", parse_schema, None)
    pooler = read.get("pooler", parse_pooler, None)
    if isinstance(url, PostgresUrl):
        return attrs.evolve(url, schema=schema or url.schema, pooler=pooler or url.pooler)
    for name, value in (("schema", schema), ("pooler", pooler)):
        if value is not None:
            raise InvalidSettingError(read.spelling(name), f"is for PostgreSQL, and not {url}")
    return url


def _span(least: timedelta) -> Callable[[str], timedelta]:
    most = timedelta(hours=1)

    def parse(text: str) -> timedelta:
        span = parse_duration(text)
        if not least <= span <= most:
            raise ValueError(f"must be from {shown(least)} to {shown(most)}, not {text}")
        return span

    return parse


def _check_addresses(settings: ServerSettings, read: _Reader) -> None:
    for name, address in (("grpc", settings.grpc), ("http", settings.http.address)):
        if address is None or settings.insecure or _is_loopback(address.host):
            continue
        raise InvalidSettingError(
            read.spelling(name),
            f"{address} can be reached from other computers, by anybody, unencrypted;"
            " say --insecure (LEASEQ_INSECURE=1) if the network is yours alone",
        )


def _http(text: str) -> HttpWish:
    address = None if text.lower() == "off" else parse_address(text)
    return HttpWish(address=address, asked_for=True)


def _host_names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip().lower() for name in text.split(","))
    for name in names:
        if _HOST_NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is no host's name")
    return names


def _switch(text: str) -> bool:
    if text.lower() not in _YES | _NO:
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() in _YES


def _log_level(text: str) -> LogLevel:
    match text.lower():
        case "debug" | "info" | "warning" | "error" as level:
            return level
        case _:
            raise ValueError(f"{text!r} is none of debug, info, warning, error")


def _log_format(text: str) -> LogFormat:
    match text.lower():
        case "auto" | "text" | "json" as form:
            return form
        case _:
            raise ValueError(f"{text!r} is none of auto, text, json")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
