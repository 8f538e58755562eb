"""
A worker whose handler does nothing.

    noop_worker.py URL QUEUE
"""

from __future__ import annotations

import sys
from typing import Any

from leaseq import Worker


def main() -> None:
    """Work until told to stop."""
    worker = Worker(sys.argv[1], queues=[sys.argv[2]], concurrency=20)

    @worker.task("send")
    async def send(payload: dict[str, Any]) -> None:
        pass

    print("is about to work", flush=True)
    worker.run()


if __name__ == "__main__":
    main()
