"""What servers and clients must agree on about the connection between them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Final

from ...domain.limits import MAX_WAIT

_MIB: Final = 1024 * 1024
_MILLISECOND: Final = timedelta(milliseconds=1)

SPLIT_BYTES: Final = 3 * _MIB
"""Of items in one request of our client; a single item may be larger."""

MAX_REQUEST_BYTES: Final = 4 * _MIB + 64 * 1024
"""What a server accepts: what others' default is, with some slack for what wraps the items."""

MAX_REPLY_BYTES: Final = 32 * _MIB
"""What our client accepts. Only a list of very many queues is larger than 4 MiB."""

DEADLINE_MARGIN: Final = timedelta(milliseconds=500)
"""By how much a Lease stops waiting before its caller does."""

# A client that pings more often than the server permits is thrown out (too_many_pings), in
# the middle of its calls. So the client's interval is well above the server's least.
CLIENT_PING_EVERY: Final = timedelta(seconds=20)
SERVER_PING_EVERY: Final = timedelta(seconds=30)
PINGS_PERMITTED_EVERY: Final = timedelta(seconds=5)
_PING_TIMEOUT: Final = timedelta(seconds=10)

# Connections end now and then so that clients spread over servers that came later. A call
# that was begun may finish: no Lease is cut off while it waits.
_CONNECTION_AGE: Final = timedelta(minutes=10)
_CONNECTION_GRACE: Final = 2 * MAX_WAIT

_CALLS_PER_CONNECTION: Final = 20_000
_UNSEEN_CALLS: Final = 20_000

_RECONNECT_AFTER: Final = timedelta(milliseconds=100)
# Less than the time for which a caller hopes for a server (see `caller`): it must not be told
# that nobody listens when somebody has been for long.
_RECONNECT_AT_MOST_AFTER: Final = timedelta(seconds=2)
_RESOLVE_AT_MOST_EVERY: Final = timedelta(seconds=5)

Options = list[tuple[str, str | int]]


def _ms(span: timedelta) -> int:
    return span // _MILLISECOND


def server_options() -> Options:
    """Return the channel arguments of a server."""
    return [
        # Otherwise a second server on the port starts without a word, and takes half the calls.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
        ("grpc.max_send_message_length", MAX_REPLY_BYTES),
        # More than may wait for tasks, so that long polls keep no heartbeat out.
        ("grpc.max_concurrent_streams", _CALLS_PER_CONNECTION),
        # Of calls that no handler has seen yet gRPC ends some at random, as CANCELLED, once they
        # are more than this. Its own 1000 are exceeded when as many workers come back at once.
        ("grpc.server.max_pending_requests", _UNSEEN_CALLS),
        ("grpc.server.max_pending_requests_hard_limit", 2 * _UNSEEN_CALLS),
        ("grpc.keepalive_time_ms", _ms(SERVER_PING_EVERY)),
        ("grpc.keepalive_timeout_ms", _ms(_PING_TIMEOUT)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", _ms(PINGS_PERMITTED_EVERY)),
        ("grpc.max_connection_age_ms", _ms(_CONNECTION_AGE)),
        ("grpc.max_connection_age_grace_ms", _ms(_CONNECTION_GRACE)),
    ]


def client_options() -> Options:
    """Return the channel arguments of a client."""
    return [
        ("grpc.max_receive_message_length", MAX_REPLY_BYTES),
        ("grpc.max_send_message_length", MAX_REPLY_BYTES),
        ("grpc.keepalive_time_ms", _ms(CLIENT_PING_EVERY)),
        ("grpc.keepalive_timeout_ms", _ms(_PING_TIMEOUT)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.initial_reconnect_backoff_ms", _ms(_RECONNECT_AFTER)),
        ("grpc.min_reconnect_backoff_ms", _ms(_RECONNECT_AFTER)),
        ("grpc.max_reconnect_backoff_ms", _ms(_RECONNECT_AT_MOST_AFTER)),
        ("grpc.dns_min_time_between_resolutions_ms", _ms(_RESOLVE_AT_MOST_EVERY)),
        # No retry policy: gRPC by itself repeats only calls that never reached a server.
        ("grpc.service_config", json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})),
        ("grpc.service_config_disable_resolution", 1),
        # Heartbeats have a connection of their own, not one shared behind the scenes.
        ("grpc.use_local_subchannel_pool", 1),
    ]
