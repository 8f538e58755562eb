from leaseq.domain.ids import JsonText, QueueName, TaskType
from leaseq.domain.retry import RetryPolicy
from leaseq.domain.storing import Queue
from leaseq.domain.task import Queued, Task
from leaseq.testing import NOON, a_task_id


def test_a_task_of_which_nothing_else_is_said_has_no_past() -> None:
    task = Task(
        id=a_task_id(),
        queue=QueueName("emails"),
        type=TaskType("send"),
        payload=JsonText("{}"),
        payload_bytes=2,
        fingerprint="0" * 64,
        max_attempts=10,
        retry=RetryPolicy(),
        state=Queued(),
        run_after=NOON,
        created_at=NOON,
        updated_at=NOON,
    )

    assert (task.priority, task.version) == (0, 1)
    assert (task.attempts, task.releases, task.lease_number) == (0, 0, 0)
    assert (task.errors, task.last_error, task.settled) == ((), None, None)


def test_a_queue_of_which_nothing_is_said_is_open_and_not_stored() -> None:
    queue = Queue(name=QueueName("emails"))

    assert (queue.paused, queue.version) == (False, 0)
