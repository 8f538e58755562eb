"""A WSGI application that enqueues, for servers with prefork workers and threads."""

import os
from collections.abc import Callable, Iterable

import leaseq

# Made once in gunicorn's master: each worker connects by itself at its first call.
client = leaseq.connect(os.environ.get("QUEUE_URL", "grpc://127.0.0.1:7480"))


def app(environ: dict[str, object], start_response: Callable[..., object]) -> Iterable[bytes]:
    """Enqueue a task named by the path, and answer with its id."""
    try:
        enqueued = client.enqueue("greet", {"path": str(environ["PATH_INFO"])}, queue="web")
    except leaseq.StorageUnavailableError as error:
        start_response("503 Service Unavailable", [("Content-Type", "text/plain")])
        return [f"{error}\n".encode()]
    start_response("202 Accepted", [("Content-Type", "text/plain")])
    return [f"{enqueued.task.id}\n".encode()]
