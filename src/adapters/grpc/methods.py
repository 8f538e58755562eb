"""The methods of the wire, each with its types, for servers and clients."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import attrs
from google.protobuf.message import Message

from .generated import admin_pb2, queue_pb2

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

QUEUE_SERVICE: Final = "leaseq.v1.TaskQueue"
ADMIN_SERVICE: Final = "leaseq.v1.TaskAdmin"


@attrs.frozen
class Method(Generic[Q, R]):
    """One method: a request of type `Q` is answered by a reply of type `R`."""

    service: str
    name: str
    request: type[Q]
    reply: type[R]

    @property
    def path(self) -> str:
        """What names the method on the wire."""
        return f"/{self.service}/{self.name}"


ENQUEUE: Final = Method(
    QUEUE_SERVICE, "Enqueue", queue_pb2.EnqueueRequest, queue_pb2.EnqueueResponse
)
ENQUEUE_BATCH: Final = Method(
    QUEUE_SERVICE, "EnqueueBatch", queue_pb2.EnqueueBatchRequest, queue_pb2.EnqueueBatchResponse
)
LEASE: Final = Method(QUEUE_SERVICE, "Lease", queue_pb2.LeaseRequest, queue_pb2.LeaseResponse)
END_WAIT: Final = Method(
    QUEUE_SERVICE, "EndWait", queue_pb2.EndWaitRequest, queue_pb2.EndWaitResponse
)
HEARTBEAT: Final = Method(
    QUEUE_SERVICE, "Heartbeat", queue_pb2.HeartbeatRequest, queue_pb2.HeartbeatResponse
)
COMPLETE: Final = Method(
    QUEUE_SERVICE, "Complete", queue_pb2.CompleteRequest, queue_pb2.CompleteResponse
)
FAIL: Final = Method(QUEUE_SERVICE, "Fail", queue_pb2.FailRequest, queue_pb2.FailResponse)
RELEASE: Final = Method(
    QUEUE_SERVICE, "Release", queue_pb2.ReleaseRequest, queue_pb2.ReleaseResponse
)
SETTLE: Final = Method(QUEUE_SERVICE, "Settle", queue_pb2.SettleRequest, queue_pb2.SettleResponse)
GET_TASK: Final = Method(
    QUEUE_SERVICE, "GetTask", queue_pb2.GetTaskRequest, queue_pb2.GetTaskResponse
)

LIST_TASKS: Final = Method(
    ADMIN_SERVICE, "ListTasks", admin_pb2.ListTasksRequest, admin_pb2.ListTasksResponse
)
REQUEUE_TASKS: Final = Method(
    ADMIN_SERVICE, "RequeueTasks", admin_pb2.RequeueTasksRequest, admin_pb2.RequeueTasksResponse
)
CANCEL_TASKS: Final = Method(
    ADMIN_SERVICE, "CancelTasks", admin_pb2.CancelTasksRequest, admin_pb2.CancelTasksResponse
)
DELETE_TASKS: Final = Method(
    ADMIN_SERVICE, "DeleteTasks", admin_pb2.DeleteTasksRequest, admin_pb2.DeleteTasksResponse
)
LIST_QUEUES: Final = Method(
    ADMIN_SERVICE, "ListQueues", admin_pb2.ListQueuesRequest, admin_pb2.ListQueuesResponse
)
PAUSE_QUEUE: Final = Method(
    ADMIN_SERVICE, "PauseQueue", admin_pb2.PauseQueueRequest, admin_pb2.PauseQueueResponse
)
RESUME_QUEUE: Final = Method(
    ADMIN_SERVICE, "ResumeQueue", admin_pb2.ResumeQueueRequest, admin_pb2.ResumeQueueResponse
)
