from __future__ import annotations

from pathlib import Path

import pytest

from leaseq.domain.errors import InvalidArgumentError
from leaseq.entrypoints.urls import (
    Address,
    GrpcUrl,
    MemoryUrl,
    PostgresUrl,
    SqliteUrl,
    parse_address,
    parse_storage_url,
    parse_url,
    redacted,
)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("memory://", MemoryUrl()),
        ("memory://tests", MemoryUrl(name="tests")),
        ("sqlite:///tasks.db", SqliteUrl(path=Path("tasks.db"))),
        ("sqlite:////var/lib/tasks.db", SqliteUrl(path=Path("/var/lib/tasks.db"))),
        ("sqlite:///my%20tasks%3F.db", SqliteUrl(path=Path("my tasks?.db"))),
        ("SQLite:///tasks.db", SqliteUrl(path=Path("tasks.db"))),
        ("postgresql://u:p@h/db", PostgresUrl(dsn="postgresql://u:p@h/db")),
        ("postgres://h1:1,h2:2/db", PostgresUrl(dsn="postgres://h1:1,h2:2/db")),
        (
            "postgresql:///db?options=-c%20a+b&schema=Q%201&x&pooler=transaction",
            PostgresUrl(
                dsn="postgresql:///db?options=-c%20a+b&x", schema="Q 1", pooler="transaction"
            ),
        ),
        ("grpc://localhost:7480", GrpcUrl(address=Address(host="localhost", port=7480))),
        ("grpc://queue.internal/", GrpcUrl(address=Address(host="queue.internal", port=7480))),
        ("grpc://[::1]:99", GrpcUrl(address=Address(host="::1", port=99))),
    ],
)
def test_a_url_names_where_the_queue_is(text: str, url: object) -> None:
    assert parse_url(text) == url


@pytest.mark.parametrize(
    "text", ["", "tasks.db", "mysql://h/db", "http://localhost", "://x", "localhost:7480"]
)
def test_an_unknown_scheme_is_answered_with_the_known_ones(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"url: .*sqlite:///FILE, postgresql://.*grpc:"):
        parse_url(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("sqlite://tasks.db", "third slash"),
        ("sqlite:///", "memory://"),
        ("sqlite:///:memory:", "memory://"),
        ("sqlite:///tasks.db?mode=ro", "takes no parameters"),
        ("sqlite:///a%00b", "takes no parameters"),
        ("memory://a b", "up to 100 of"),
        ("grpc://", "HOST:PORT"),
        ("grpc://host:99999", "HOST:PORT"),
        ("grpc://host/path", "HOST:PORT"),
        ("postgresql://h/db?schema=", "1 to 63 bytes"),
        ("postgresql://h/db?pooler=session", "none or transaction"),
    ],
)
def test_a_malformed_url_is_answered_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        parse_url(text)

    assert hint in str(refusal.value)


@pytest.mark.parametrize(
    "password", ["p@hunter2", "p/hunter2", "p:hunter2", "p?hunter2", "@hunter2"]
)
def test_a_password_that_is_not_percent_encoded_is_refused_and_not_shown(password: str) -> None:
    with pytest.raises(InvalidArgumentError, match="percent-encoded") as refusal:
        parse_url(f"postgresql://leaseq:{password}@127.0.0.1/x")

    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:p%40%2F%3A@h:5432/db",
        "postgresql://u@[::1]:5432,h:5433/db?options=a@b",
        "postgresql://h:5432/db?application_name=a@b:c/d",
        "postgresql:///db?host=/run/postgresql",
    ],
)
def test_a_url_that_libpq_reads_in_one_way_is_taken_as_it_is(text: str) -> None:
    url = parse_url(text)

    assert isinstance(url, PostgresUrl)
    assert url.dsn == text


def test_a_server_is_no_storage() -> None:
    with pytest.raises(InvalidArgumentError, match="names a server"):
        parse_storage_url("grpc://localhost:7480")


@pytest.mark.parametrize("text", ["", ":7480", "host", "host:", "host:65536", "h h:1", "host:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        parse_address(text)


@pytest.mark.parametrize("text", ["127.0.0.1:0", "[::1]:7480", "queue-1.internal:65535"])
def test_an_address_is_shown_as_it_is_read(text: str) -> None:
    assert str(parse_address(text)) == text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:hunter2@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u@h:5432/db?options=a@b", "postgresql://u@h:5432/db?options=a@b"),
        ("postgresql://:hunter2@h/db", "postgresql://:***@h/db"),
        ("postgresql://u:hun/ter@2:@h/db", "postgresql://u:***@h/db"),
        (
            "postgresql://h/db?user=u&password=hunter2&x=1",
            "postgresql://h/db?user=u&password=***&x=1",
        ),
        ("postgresql://h/db?sslpassword=hunter2", "postgresql://h/db?sslpassword=***"),
        ("host=h password=hunter2 user=u", "host=h password=*** user=u"),
        ("host=h password = 'hun ter2'", "host=h password = ***"),
        (r"host=h password='hun\'ter2'", "host=h password=***"),
        ("u:hunter2@h/db", "u:***@h/db"),
        ("sqlite:///tasks.db", "sqlite:///tasks.db"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert redacted(url) == shown


@pytest.mark.parametrize(
    "text",
    ["mysql://u:hunter2@h/db", "u:hunter2@h/db", "grpc://u:hunter2@h:1", "x=1 password=hunter2"],
)
def test_no_refusal_of_a_url_shows_its_password(text: str) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        parse_url(text)

    assert "hunter2" not in str(refusal.value)


def test_a_parsed_url_shows_no_password() -> None:
    url = parse_url("postgresql://u:hunter2@h/db")

    assert "hunter2" not in f"{url} {url!r}"
