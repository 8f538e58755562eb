from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from leaseq.entrypoints.settings import (
    HttpWish,
    InvalidSettingError,
    ServerSettings,
    environment,
    flags,
    storage_settings,
)
from leaseq.entrypoints.urls import Address, MemoryUrl, PostgresUrl, SqliteUrl


def test_without_any_word_a_server_is_safe_on_a_laptop() -> None:
    settings = ServerSettings.from_env({})

    assert settings == ServerSettings()
    assert settings.storage == SqliteUrl(path=Path("leaseq.db"))
    assert str(settings.grpc) == "127.0.0.1:7480"
    assert not settings.insecure


def test_the_environment_sets_everything() -> None:
    settings = ServerSettings.from_env(
        {
            "LEASEQ_STORAGE": "postgresql://u:p@h/db",
            "LEASEQ_SCHEMA": "q-1",
            "LEASEQ_POOLER": "transaction",
            "LEASEQ_GRPC": "0.0.0.0:1",
            "LEASEQ_HTTP": "127.0.0.1:2",
            "LEASEQ_HTTP_HOSTS": "queue.example.org, Q",
            "LEASEQ_INSECURE": "true",
            "LEASEQ_REFLECTION": "1",
            "LEASEQ_REAPER_INTERVAL": "250ms",
            "LEASEQ_STORAGE_WAIT": "0",
            "LEASEQ_GRACE": "1m",
            "LEASEQ_LOG_LEVEL": "DEBUG",
            "LEASEQ_LOG_FORMAT": "json",
            "PATH": "/bin",
        }
    )

    assert settings == ServerSettings(
        storage=PostgresUrl(dsn="postgresql://u:p@h/db", schema="q-1", pooler="transaction"),
        grpc=Address(host="0.0.0.0", port=1),  # noqa: S104
        http=HttpWish(address=Address(host="127.0.0.1", port=2), asked_for=True),
        http_hosts=("queue.example.org", "q"),
        insecure=True,
        reflection=True,
        reaper_interval=timedelta(milliseconds=250),
        storage_wait=timedelta(0),
        grace=timedelta(minutes=1),
        log_level="debug",
        log_format="json",
    )


def test_a_flag_wins_over_the_environment() -> None:
    settings = ServerSettings.load(
        flags({"storage": "memory://flag", "grpc": None, "insecure": False}),
        environment({"LEASEQ_STORAGE": "memory://env", "LEASEQ_GRPC": "[::1]:9"}),
    )

    assert settings.storage == MemoryUrl(name="flag")
    assert settings.grpc == Address(host="::1", port=9)


def test_an_empty_variable_counts_as_not_set() -> None:
    assert ServerSettings.from_env({"LEASEQ_STORAGE": ""}) == ServerSettings()


def test_the_schema_of_a_flag_wins_over_that_of_the_url() -> None:
    text = "postgresql://h/db?schema=a&pooler=transaction"

    url = storage_settings(flags({"storage": text, "schema": "b"}))

    assert url == PostgresUrl(dsn="postgresql://h/db", schema="b", pooler="transaction")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("storage", "mysql://h/db", "sqlite:///FILE"),
        ("storage", "grpc://h:1", "names a server"),
        ("grpc", "nowhere", "HOST:PORT"),
        ("http", "nowhere", "HOST:PORT"),
        ("http-hosts", "a, b c", "'b c' is no host's name"),
        ("reaper-interval", "0", "from 0.1s to 1h"),
        ("reaper-interval", "often", "no duration"),
        ("storage-wait", "2h", "from 0s to 1h"),
        ("grace", "-1", "no duration"),
        ("reflection", "maybe", "neither true nor false"),
        ("log-level", "loud", "debug, info"),
        ("log-format", "xml", "auto, text, json"),
        ("schema", "s", "is for PostgreSQL"),
        ("pooler", "transaction", "is for PostgreSQL"),
        ("pooler", "session", "none or transaction"),
    ],
)
def test_a_bad_value_is_named_as_the_operator_spelt_it(name: str, value: str, why: str) -> None:
    variable = "LEASEQ_" + name.replace("-", "_").upper()

    with pytest.raises(InvalidSettingError, match=rf"^--{name}: ") as by_flag:
        ServerSettings.load(flags({name: value}))
    with pytest.raises(InvalidSettingError, match=rf"^{variable}: ") as by_variable:
        ServerSettings.from_env({variable: value})

    assert why in str(by_flag.value)
    assert why in str(by_variable.value)


@pytest.mark.parametrize("schema", ["", "x" * 64, "é" * 32, "a\0b"])
def test_a_schema_that_postgresql_would_cut_is_refused(schema: str) -> None:
    with pytest.raises(InvalidSettingError, match=r"--schema: .* 1 to 63 bytes"):
        storage_settings(flags({"storage": "postgresql://h/db", "schema": schema}))


def test_a_bad_storage_is_refused_without_its_password() -> None:
    with pytest.raises(InvalidSettingError) as refusal:
        ServerSettings.from_env({"LEASEQ_STORAGE": "mysql://u:hunter2@h/db"})

    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("address", ["0.0.0.0:7480", "[::]:7480", "192.168.0.1:1", "example.org:1"])
def test_an_address_for_all_to_reach_must_be_asked_for(address: str) -> None:
    with pytest.raises(InvalidSettingError, match=r"LEASEQ_GRPC: .*--insecure"):
        ServerSettings.from_env({"LEASEQ_GRPC": address})
    with pytest.raises(InvalidSettingError, match=r"LEASEQ_HTTP: .*--insecure"):
        ServerSettings.from_env({"LEASEQ_HTTP": address})

    assert ServerSettings.load(flags({"grpc": address, "insecure": True})).insecure


def test_http_can_be_left_away() -> None:
    assert ServerSettings.load(flags({"http": "off"})).http == HttpWish(
        address=None, asked_for=True
    )


@pytest.mark.parametrize("address", ["127.0.0.1:0", "127.9.9.9:1", "[::1]:1", "localhost:7480"])
def test_a_loopback_address_needs_no_asking(address: str) -> None:
    assert str(ServerSettings.load(flags({"grpc": address})).grpc) == address
