"""`leaseq server` and `leaseq migrate`: the commands that need a storage."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ...domain.errors import StorageError
from ..settings import (
    ServerSettings,
    environment,
    flags,
    process_environment,
    storage_settings,
)
from .options import AsJson
from .terminal import UnwritableOutputError, note, say

_Storage = Annotated[
    str | None,
    typer.Option(
        "--storage",
        metavar="URL",
        help="sqlite:///FILE, postgresql://USER@HOST/DATABASE or memory://NAME."
        "  [env var: LEASEQ_STORAGE; default: sqlite:///leaseq.db]",
    ),
]
_Schema = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="NAME",
        help="Schema of PostgreSQL.  [env var: LEASEQ_SCHEMA; default: leaseq]",
    ),
]
_Pooler = Annotated[
    str | None,
    typer.Option(
        "--pooler",
        metavar="KIND",
        help="What stands before PostgreSQL: none, or transaction (as PgBouncer)."
        "  [env var: LEASEQ_POOLER; default: none]",
    ),
]
_Grpc = Annotated[
    str | None,
    typer.Option(
        "--grpc",
        metavar="HOST:PORT",
        help="Where to serve gRPC; port 0 takes a free one."
        "  [env var: LEASEQ_GRPC; default: 127.0.0.1:7480]",
    ),
]
_Http = Annotated[
    str | None,
    typer.Option(
        "--http",
        metavar="HOST:PORT",
        help="Where to serve HTTP; port 0 takes a free one, off serves none."
        "  [env var: LEASEQ_HTTP; default: 127.0.0.1:7481, with the extra http]",
    ),
]
_HttpHosts = Annotated[
    str | None,
    typer.Option(
        "--http-hosts",
        metavar="NAMES",
        help="Names that HTTP answers to beside localhost, with commas between."
        "  [env var: LEASEQ_HTTP_HOSTS]",
    ),
]
_ReaperInterval = Annotated[
    str | None,
    typer.Option(
        "--reaper-interval",
        metavar="DURATION",
        help="How often to look for expired leases."
        "  [env var: LEASEQ_REAPER_INTERVAL; default: 5s]",
    ),
]
_StorageWait = Annotated[
    str | None,
    typer.Option(
        "--storage-wait",
        metavar="DURATION",
        help="How long to wait at the start for a storage that is away."
        "  [env var: LEASEQ_STORAGE_WAIT; default: 30s]",
    ),
]
_Grace = Annotated[
    str | None,
    typer.Option(
        "--grace",
        metavar="DURATION",
        help="How long calls may take to finish at a stop.  [env var: LEASEQ_GRACE; default: 8s]",
    ),
]
_Insecure = Annotated[
    bool | None,
    typer.Option(
        "--insecure/--secure",
        help="Serve on an address that others can reach, unencrypted."
        "  [env var: LEASEQ_INSECURE; default: secure]",
    ),
]
_Reflection = Annotated[
    bool | None,
    typer.Option(
        "--reflection/--no-reflection",
        help="Tell callers what methods there are, for grpcurl and the like."
        "  [env var: LEASEQ_REFLECTION; default: no-reflection]",
    ),
]
LogLevelOption = Annotated[
    str | None,
    typer.Option(
        "--log-level",
        metavar="LEVEL",
        help="debug, info, warning or error.  [env var: LEASEQ_LOG_LEVEL; default: info]",
    ),
]
LogFormatOption = Annotated[
    str | None,
    typer.Option(
        "--log-format",
        metavar="FORMAT",
        help="text, json, or auto: text on a terminal."
        "  [env var: LEASEQ_LOG_FORMAT; default: auto]",
    ),
]


def server(  # noqa: PLR0913  one for each setting
    *,
    storage: _Storage = None,
    schema: _Schema = None,
    pooler: _Pooler = None,
    grpc: _Grpc = None,
    http: _Http = None,
    http_hosts: _HttpHosts = None,
    reaper_interval: _ReaperInterval = None,
    storage_wait: _StorageWait = None,
    grace: _Grace = None,
    insecure: _Insecure = None,
    reflection: _Reflection = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
) -> None:
    """
    Serve a storage over gRPC and HTTP, until SIGTERM or Ctrl-C.

    Without any option tasks are kept in the file leaseq.db of the current folder.
    """
    given = flags(
        {
            "storage": storage,
            "schema": schema,
            "pooler": pooler,
            "grpc": grpc,
            "http": http,
            "http-hosts": http_hosts,
            "reaper-interval": reaper_interval,
            "storage-wait": storage_wait,
            "grace": grace,
            "insecure": insecure,
            "reflection": reflection,
            "log-level": log_level,
            "log-format": log_format,
        }
    )
    _serve(ServerSettings.load(given, environment(process_environment())))


def _serve(settings: ServerSettings) -> None:
    # A server's imports are heavy, and only it should pay for them.
    from ..extras import MissingExtraError  # noqa: PLC0415
    from ..logs import configure_logging  # noqa: PLC0415
    from ..server import Addresses, run_server, start_line  # noqa: PLC0415

    def announce(addresses: Addresses) -> None:
        # It serves all the same, and has a log to say so.
        try:
            say(start_line(settings, addresses))
        except UnwritableOutputError as error:
            note(str(error))

    configure_logging(level=settings.log_level, form=settings.log_format)
    try:
        run_server(settings, announce=announce)
    except StorageError as error:
        note(f"storage {settings.storage}: {error}")
        raise typer.Exit(1) from None
    except (MissingExtraError, OSError) as error:
        note(str(error))
        raise typer.Exit(1) from None


def migrate(*, storage: _Storage = None, schema: _Schema = None, as_json: AsJson = False) -> None:
    """
    Bring the schema of a storage to the version that this leaseq works with.

    A storage that is not there is created. It needs not be: the first server does the same.
    """
    given = flags({"storage": storage, "schema": schema})
    url = storage_settings(given, environment(process_environment()))
    from asyncio import run  # noqa: PLC0415  as above

    from ..migrating import migrate as migrate_storage  # noqa: PLC0415

    done = run(migrate_storage(url))
    if as_json:
        told = {"storage": str(url), "created": done.created, "applied": done.applied}
        say(json.dumps(told))
        return
    # Who misspelt the name of a storage that is there should see it.
    if done.created:
        say(f"created {url}")
    say(f"applied {', '.join(done.applied)}" if done.applied else "nothing to do")
