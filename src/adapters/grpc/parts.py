"""Batches cut into requests that a server accepts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from google.protobuf.message import Message

from ...domain.errors import (
    FieldViolation,
    InvalidArgumentError,
    NotSentError,
    StorageError,
    TaskQueueError,
)
from .options import SPLIT_BYTES

I = TypeVar("I")  # noqa: E741  an item
M = TypeVar("M", bound=Message)
A = TypeVar("A")

_Numbered = tuple[int, M]


async def send_in_parts(
    items: Sequence[I],
    write: Callable[[I], M],
    send: Callable[[Sequence[M]], Awaitable[Sequence[A]]],
) -> list[A | TaskQueueError]:
    """
    Answer each item, in order; one that cannot be sent is answered with its fault.

    Once a part was answered, the failure of a later one is the answer of its items, and
    NotSentError that of those behind them: what was done must not be forgotten.

    Raises:
        TaskQueueError: the first part failed, so that nothing is known to be done.
    """
    answers: dict[int, A | TaskQueueError] = {}
    messages: list[tuple[int, M]] = []
    for index, item in enumerate(items):
        try:
            messages.append((index, _sendable(write(item))))
        except InvalidArgumentError as fault:
            answers[index] = fault
    failure: TaskQueueError | None = None
    for number, part in enumerate(_parts(messages)):
        if failure is None:
            try:
                replies = await _answered(part, send)
            except TaskQueueError as error:
                if not number:
                    raise
                answers.update((index, error) for index, _ in part)
                failure = NotSentError(f"not sent, as what came before could not be: {error}")
                continue
        answers.update((index, failure or replies[index]) for index, _ in part)
    return [answers[index] for index in range(len(items))]


async def _answered(
    part: Sequence[tuple[int, M]], send: Callable[[Sequence[M]], Awaitable[Sequence[A]]]
) -> dict[int, A]:
    replies = await send([message for _, message in part])
    if len(replies) != len(part):
        raise StorageError(f"the server answered {len(replies)} items of {len(part)}")
    return {index: reply for (index, _), reply in zip(part, replies, strict=True)}


def _parts(messages: Sequence[tuple[int, M]]) -> Iterator[list[tuple[int, M]]]:
    part: list[tuple[int, M]] = []
    room = SPLIT_BYTES
    for index, message in messages:
        size = message.ByteSize()
        if part and size > room:
            yield part
            part, room = [], SPLIT_BYTES
        part.append((index, message))
        room -= size
    if part:
        yield part


def _sendable(message: M) -> M:
    """Refuse what a server would not even read; it is far beyond every limit."""
    if message.ByteSize() <= SPLIT_BYTES:
        return message
    field = max(_texts(message), key=lambda named: len(named[1]))[0]
    raise InvalidArgumentError([FieldViolation(field=field, description="is far too long")])


def _texts(message: Message) -> Iterator[tuple[str, str]]:
    for field, value in message.ListFields():
        if isinstance(value, str):
            yield field.name, value
        elif isinstance(value, Message):
            yield from _texts(value)
