"""Calls to the dispatcher of tf.data service, for which TensorFlow has no Python function.

The numbers of fields are those of `tensorflow/core/data/service/dispatcher.proto` and `common.proto`: the same from 2.4 to 2.21.
"""

from typing import Iterator, List, NamedTuple, Sequence, Tuple, Union

_CALL_SECONDS = 10.0


class DataTask(NamedTuple):
    """The part of one worker in one epoch of a dataset, which TensorFlow calls an iteration."""

    iteration: int
    """Later iterations have higher numbers."""
    task: int


class DispatcherError(Exception):
    """A call has failed."""


class DataDispatcher:
    """The dispatcher at an address."""

    def __init__(self, address: str) -> None:
        import grpc  # TensorFlow requires it

        self._channel = grpc.insecure_channel(address)
        self._error = grpc.RpcError

    def workers(self) -> List[str]:
        """The addresses of all workers that have ever registered."""
        workers = _members(self._call("GetWorkers", b""), 1)
        return [address.decode() for worker in workers for address in _members(worker, 1)]

    def tasks(self, worker: str) -> List[DataTask]:
        """The tasks of a worker in the epochs that have not ended."""
        response = self._call("WorkerHeartbeat", _member(1, worker.encode()))
        return [DataTask(_number(task, 5), _number(task, 4)) for task in _members(response, 1)]

    def end_tasks(self, worker: str, tasks: Sequence[DataTask]) -> None:
        """Report as the worker does that its tasks are completed."""
        progress = [_member(2, b"\x08" + _varint(task.task) + b"\x10\x01") for task in tasks]
        self._call("WorkerUpdate", _member(1, worker.encode()) + b"".join(progress))

    def _call(self, name: str, request: bytes) -> bytes:
        try:
            call = self._channel.unary_unary(f"/tensorflow.data.DispatcherService/{name}")
            return bytes(call(request, timeout=_CALL_SECONDS))
        except self._error as error:
            raise DispatcherError(f"{name} of the dispatcher: {error}") from None


def _varint(number: int) -> bytes:
    digits = [number >> shift & 0x7F for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes([*(digit | 0x80 for digit in digits[:-1]), digits[-1]])


def _member(field: int, content: bytes) -> bytes:
    """A string or a message as a member of a message."""
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _members(message: bytes, field: int) -> List[bytes]:
    return [value for number, value in _fields(message) if number == field and isinstance(value, bytes)]


def _number(message: bytes, field: int) -> int:
    return next((value for number, value in _fields(message) if number == field and isinstance(value, int)), 0)


def _fields(message: bytes) -> Iterator[Tuple[int, Union[int, bytes]]]:
    position = 0
    while position < len(message):
        key, position = _read_varint(message, position)
        if key & 7 == 0:
            number, position = _read_varint(message, position)
            yield key >> 3, number
            continue
        size, position = _read_varint(message, position) if key & 7 == 2 else (8 if key & 7 == 1 else 4, position)
        yield key >> 3, message[position : position + size]
        position += size


def _read_varint(message: bytes, position: int) -> Tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[position]
        number |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return number, position
