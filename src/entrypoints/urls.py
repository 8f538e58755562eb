"""
Where a queue is, as a URL.

`sqlite:///tasks.db` is relative to the working directory, `sqlite:////var/tasks.db` is
absolute. No message here shows a password.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote

import attrs

from ..domain.errors import FieldViolation, InvalidArgumentError
from .third_party import is_registered, registered_schemes

_OUR_STORAGES: Final = ("sqlite:///FILE", "postgresql://USER@HOST/DATABASE", "memory://NAME")
_A_SERVER: Final = "grpc://HOST:PORT"
_OUR_SCHEMES: Final = frozenset({"sqlite", "postgresql", "postgres", "memory", "grpc"})
DEFAULT_GRPC_PORT: Final = 7480
DEFAULT_HTTP_PORT: Final = 7481

_MAX_PORT: Final = 65535
_MAX_SCHEMA_BYTES: Final = 63
"""PostgreSQL cuts longer names without a word."""

_HOST_AND_PORT: Final = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?"
)
_OUR_PARAMETERS: Final = frozenset({"pooler", "schema"})
_SECRET_PARAMETER: Final = re.compile(
    r"(?i)\b((?:ssl)?password\s*=\s*)(?:'(?:[^'\\]|\\.)*'|[^&\s]*)"
)
# The scheme is possessive: given back, it would pass for a user's name.
# Python 3.11.2 reads a possessive quantifier of a group wrongly, so the scheme is looked for ahead.
_USER_INFO: Final = re.compile(r"(?s)^(?P<scheme>[\w+.-]+://|(?![\w+.-]+://))(?P<user>[^:@/]*):.*@")


Pooler = Literal["none", "transaction"]
"""What stands before PostgreSQL: nothing, or one that gives connections for a transaction."""


@attrs.frozen(kw_only=True)
class Address:
    """A host and a port; port 0 asks for a free one."""

    host: str
    """Without the brackets of IPv6."""

    port: int

    def __str__(self) -> str:
        """Return `HOST:PORT`, as `parse_address` reads it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@attrs.frozen(kw_only=True)
class MemoryUrl:
    """Tasks in this process, shared by name, gone with their last user."""

    name: str = ""

    def __str__(self) -> str:
        """Return the URL."""
        return f"memory://{self.name}"


@attrs.frozen(kw_only=True)
class SqliteUrl:
    """Tasks in a file."""

    path: Path

    def __str__(self) -> str:
        """Return the URL."""
        return f"sqlite:///{self.path}"


@attrs.frozen(kw_only=True)
class PostgresUrl:
    """Tasks in a schema of a PostgreSQL database."""

    dsn: str = attrs.field(repr=False)
    """As libpq takes it, password included."""

    schema: str = "leaseq"
    pooler: Pooler = "none"

    def __str__(self) -> str:
        """Return the URL without its password."""
        return redacted(self.dsn)


@attrs.frozen(kw_only=True)
class ThirdPartyUrl:
    """Tasks in a storage that another package brings."""

    scheme: str
    text: str = attrs.field(repr=False)

    def __str__(self) -> str:
        """Return the URL without its password."""
        return redacted(self.text)


@attrs.frozen(kw_only=True)
class GrpcUrl:
    """A leaseq server."""

    address: Address

    def __str__(self) -> str:
        """Return the URL."""
        return f"grpc://{self.address}"


StorageUrl = MemoryUrl | SqliteUrl | PostgresUrl | ThirdPartyUrl


def parse_url(text: str) -> StorageUrl | GrpcUrl:
    """
    Return what `text` names.

    Raises:
        InvalidArgumentError: of the field `url`; names the schemes that are known here, those
            of installed packages included.
    """
    url = _parsed(text)
    if url is None:
        raise _unknown(text, (*_OUR_STORAGES, _A_SERVER))
    return url


def _parsed(text: str) -> StorageUrl | GrpcUrl | None:
    scheme, separator, rest = text.strip().partition("://")
    scheme = scheme.lower() if separator else ""
    match scheme:
        case "memory":
            return _memory(rest)
        case "sqlite":
            return _sqlite(rest)
        case "postgresql" | "postgres":
            return _postgres(text.strip())
        case "grpc":
            return _grpc(rest)
        case _ if scheme and is_registered(scheme):
            return ThirdPartyUrl(scheme=scheme, text=text.strip())
        case _:
            return None


def parse_storage_url(text: str) -> StorageUrl:
    """
    Return the storage that `text` names.

    Raises:
        InvalidArgumentError: as for `parse_url`, or it names a server.
    """
    match _parsed(text):
        case None:
            raise _unknown(text, _OUR_STORAGES)
        case GrpcUrl():
            raise _refused("a storage is wanted here, and grpc:// names a server")
        case storage:
            return storage


def parse_address(text: str, *, default_port: int | None = None) -> Address:
    """
    Return the address that `text` spells as `HOST:PORT` (`[::1]:7480` for IPv6).

    Raises:
        ValueError: it spells none.
    """
    spelt = _HOST_AND_PORT.fullmatch(text.strip())
    port_text = spelt["port"] if spelt else None
    port = default_port if port_text is None else int(port_text)
    if spelt is None or port is None or port > _MAX_PORT:
        raise ValueError(f"{redacted(text)!r} is no HOST:PORT")
    return Address(host=spelt["host"].strip("[]"), port=port)


def parse_schema(text: str) -> str:
    """
    Return the name of a PostgreSQL schema.

    Raises:
        ValueError: `text` is none.
    """
    if not 1 <= len(text.encode()) <= _MAX_SCHEMA_BYTES or "\0" in text:
        raise ValueError(f"a schema's name must be 1 to {_MAX_SCHEMA_BYTES} bytes")
    return text


def parse_pooler(text: str) -> Pooler:
    """
    Return the kind of pooler that `text` names.

    Raises:
        ValueError: it names none.
    """
    match text.lower():
        case "none" | "transaction" as pooler:
            return pooler
        case _:
            raise ValueError(f"{text!r} is no pooler: none or transaction")


def redacted(url: str) -> str:
    """
    Return `url` without passwords, also where it is malformed.

    Everything between the user's name and the last `@` goes: a password that should
    have been percent-encoded may itself hold `@`, `/` and `:`.
    """
    hidden = _USER_INFO.sub(r"\g<scheme>\g<user>:***@", url)
    return _SECRET_PARAMETER.sub(r"\1***", hidden)


def _memory(rest: str) -> MemoryUrl:
    name = unquote(rest.strip("/"))
    if re.fullmatch(r"[A-Za-z0-9._:-]{0,100}", name) is None:
        raise _refused("memory://NAME takes up to 100 of A-Z a-z 0-9 . _ : -")
    return MemoryUrl(name=name)


def _sqlite(rest: str) -> SqliteUrl:
    if not rest.startswith("/"):
        raise _refused(
            f"sqlite://{rest} should have a third slash: sqlite:///tasks.db is relative,"
            " sqlite:////var/tasks.db absolute"
        )
    path = unquote(rest[1:])
    if path in {"", "/", ":memory:"}:
        raise _refused("sqlite:/// wants a file; for tasks in memory there is memory://")
    if "?" in rest or "\0" in path:
        raise _refused("sqlite:///FILE takes no parameters; a ? in its name is written %3F")
    return SqliteUrl(path=Path(path))


def _postgres(text: str) -> PostgresUrl:
    # libpq has no parameters of these names, so they are ours to take; all others stay as they are.
    if _is_ambiguous(text.partition("://")[2]):
        # libpq would take the rest of the password for a host, and say its name.
        raise _refused(
            "the password must be percent-encoded: write @ as %40, / as %2F, : as %3A,"
            " ? as %3F and # as %23"
        )
    base, _, query = text.partition("?")
    parameters = query.split("&") if query else []
    ours = {
        name: unquote(value)
        for name, _, value in (parameter.partition("=") for parameter in parameters)
        if name in _OUR_PARAMETERS
    }
    others = [each for each in parameters if each.partition("=")[0] not in _OUR_PARAMETERS]
    url = PostgresUrl(dsn="?".join([base, "&".join(others)]) if others else base)
    try:
        if "schema" in ours:
            url = attrs.evolve(url, schema=parse_schema(ours["schema"]))
        if "pooler" in ours:
            url = attrs.evolve(url, pooler=parse_pooler(ours["pooler"]))
    except ValueError as error:
        raise _refused(str(error)) from None
    return url


def _is_ambiguous(rest: str) -> bool:
    """Whether what follows the scheme ends its user, password or host in more than one place."""
    base, _, query = rest.partition("?")
    authority, _, path = base.partition("/")
    user_info, _, _ = authority.rpartition("@")
    names = [parameter.partition("=")[0] for parameter in query.split("&")]
    return (
        "@" in user_info
        or user_info.count(":") > 1
        or "@" in path
        or any("@" in name for name in names)
    )


def _grpc(rest: str) -> GrpcUrl:
    try:
        return GrpcUrl(address=parse_address(rest.rstrip("/"), default_port=DEFAULT_GRPC_PORT))
    except ValueError as error:
        raise _refused(str(error)) from None


def _unknown(text: str, ours: Sequence[str]) -> InvalidArgumentError:
    theirs = [f"{each}://..." for each in registered_schemes() if each not in _OUR_SCHEMES]
    return _refused(f"{redacted(text)!r} is none of {', '.join((*ours, *theirs))}")


def _refused(why: str) -> InvalidArgumentError:
    return InvalidArgumentError([FieldViolation(field="url", description=why)])
