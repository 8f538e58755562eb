from __future__ import annotations

from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import pytest
from google.protobuf.descriptor import MethodDescriptor

from leaseq.adapters.grpc import methods
from leaseq.adapters.grpc.admin_calls import AdminCalls
from leaseq.adapters.grpc.calls import Calls
from leaseq.adapters.grpc.generated import admin_pb2, queue_pb2
from leaseq.adapters.grpc.methods import ADMIN_SERVICE, QUEUE_SERVICE, Method
from leaseq.adapters.grpc.options import (
    CLIENT_PING_EVERY,
    MAX_REQUEST_BYTES,
    PINGS_PERMITTED_EVERY,
    SPLIT_BYTES,
    client_options,
    server_options,
)
from leaseq.adapters.grpc.queue_calls import QueueCalls
from leaseq.adapters.grpc.waits import Waits
from leaseq.adapters.memory import MemoryStorage
from leaseq.domain.limits import MAX_JSON_BYTES
from memory_server import memory_services

METHODS = {method.path: method for method in vars(methods).values() if isinstance(method, Method)}
DESCRIBED = [
    method
    for file in (queue_pb2.DESCRIPTOR, admin_pb2.DESCRIPTOR)
    for service in file.services_by_name.values()
    for method in service.methods
]


@pytest.mark.parametrize("described", DESCRIBED, ids=lambda method: method.name)
def test_each_method_of_the_wire_is_known_with_its_types(described: MethodDescriptor) -> None:
    method = METHODS[f"/{described.containing_service.full_name}/{described.name}"]

    assert method.request.DESCRIPTOR is described.input_type
    assert method.reply.DESCRIPTOR is described.output_type


def test_no_method_is_known_that_the_wire_has_not() -> None:
    assert len(METHODS) == len(DESCRIBED)


async def test_each_method_has_a_handler() -> None:
    services = memory_services(MemoryStorage())
    calls = Calls()
    queue = QueueCalls(queue=services.queue, undo=services.queue, waits=Waits())
    admin = AdminCalls(admin=services.admin)

    handled = {f"/{QUEUE_SERVICE}/{name}" for name in queue.handlers(calls)}
    handled |= {f"/{ADMIN_SERVICE}/{name}" for name in admin.handlers(calls)}

    assert handled == set(METHODS)


def test_a_client_pings_less_often_than_a_server_permits() -> None:
    client, server = dict(client_options()), dict(server_options())

    assert CLIENT_PING_EVERY >= 2 * PINGS_PERMITTED_EVERY
    assert client["grpc.keepalive_time_ms"] == CLIENT_PING_EVERY / timedelta(milliseconds=1)
    assert server["grpc.http2.min_ping_interval_without_data_ms"] == (
        PINGS_PERMITTED_EVERY / timedelta(milliseconds=1)
    )
    assert server["grpc.keepalive_permit_without_calls"] == 1


def test_what_a_client_sends_in_one_request_a_server_accepts() -> None:
    overhead_of_an_item = 4096

    assert SPLIT_BYTES + overhead_of_an_item < MAX_REQUEST_BYTES
    assert MAX_JSON_BYTES + overhead_of_an_item < SPLIT_BYTES


def test_two_servers_cannot_share_a_port_by_accident() -> None:
    assert dict(server_options())["grpc.so_reuseport"] == 0


def test_every_option_is_one_that_grpc_knows() -> None:
    library = find_spec("grpc._cython.cygrpc")
    assert library
    assert library.origin
    words = Path(library.origin).read_bytes()
    names = dict(server_options()).keys() | dict(client_options()).keys()

    # It ignores others without a word.
    assert {name for name in names if name.encode() not in words} == set()
