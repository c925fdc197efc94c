"""The programs of tasks that are part of the agent: TensorFlow's gRPC server, TensorBoard, and the tasks of tf.data service.

The only module of the agent that imports TensorFlow.
"""

import importlib.util
import os
import sys
import threading
import time
from pathlib import PurePosixPath
from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple, Union

from ..model.task_command import data_service_address
from ..system.ports import is_listening

MISSING = "tfdeploy: TensorBoard is not installed. Add the package tensorboard to the image, or to `requirements`"

LOST_SECONDS = 20.0
"""A worker that accepts no connection for so long is lost: a restart takes less. If it returns, it takes part in the next epoch."""

_POLL_SECONDS = 2.0
_CONNECT_SECONDS = 2.0
_CALL_SECONDS = 10.0


def serve_grpc() -> None:
    """Serve TensorFlow's gRPC at this task's address in `TF_CONFIG` until stopped: a client drives all tasks (in-graph replication)."""
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    )
    print(f"serving at {server.target}", flush=True)
    server.join()


def tensorboard_arguments(env: Mapping[str, str]) -> List[str]:
    """TensorBoard's arguments, from the task's environment.

    The log folder is the parent of the run's folder, so that runs can be compared. If a task's address is its hostname, it has its own
    network, and listens on all of its addresses.
    """
    host, _, port = env["TFDEPLOY_ADDRESS"].rpartition(":")
    run_folder = env["TFDEPLOY_TRAIN_DIR"]
    folder = run_folder.rpartition("/")[0] if "://" in run_folder else str(PurePosixPath(run_folder).parent)
    listen = ["--bind_all"] if host == env["TFDEPLOY_HOSTNAME"] else ["--host", host]
    return ["--logdir", folder, "--port", port, *listen]


def run_tensorboard() -> None:
    """Become TensorBoard, which shows all runs in `train_dir`, at the task's own address; exit code 1 where it is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        sys.exit(MISSING)
    command = [sys.executable, "-m", "tensorboard.main", *tensorboard_arguments(os.environ)]
    os.chdir("/")  # modules of the user's code in the working directory could be imported instead of TensorBoard's
    os.execv(sys.executable, command)


class DataTask(NamedTuple):
    """The part of one worker in one epoch of a dataset, which TensorFlow calls an iteration."""

    iteration: int
    """Later iterations have higher numbers."""
    task: int


class DispatcherError(Exception):
    """A call has failed."""


class DataDispatcher:
    """Calls to the dispatcher at an address, for which TensorFlow has no Python function.

    The numbers of fields are those of `tensorflow/core/data/service/dispatcher.proto` and `common.proto`: the same from 2.4 to 2.21.
    """

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


class LostWorkers:
    """Decides which parts of an epoch end without their worker.

    TensorFlow's dispatcher never ends an epoch before every worker has reported the end of its part. A worker that was removed does
    not, so this dispatcher reports it instead.
    """

    def __init__(self) -> None:
        self._silent_since: Dict[str, float] = {}
        self._ended: Dict[str, int] = {}
        """Worker to the last iteration that it has no part in, because it was lost."""

    def observe(self, workers: Sequence[str], responding: Set[str], now: float) -> List[str]:
        """The workers that are lost."""
        silent = [address for address in workers if address not in responding]
        self._silent_since = {address: self._silent_since.get(address, now) for address in silent}
        return [address for address in silent if now - self._silent_since[address] >= LOST_SECONDS]

    def tasks_to_end(self, tasks: Mapping[str, Sequence[DataTask]], responding: Set[str]) -> Dict[str, List[DataTask]]:
        """Of the tasks of lost workers, those whose epoch another one completes: without one, its rest would be left out."""
        ended: Dict[str, List[DataTask]] = {}
        for address, own in tasks.items():
            ended[address] = [task for task in own if any(self._takes_part(it, task.iteration) for it in responding)]
            self._ended[address] = max([self._ended.get(address, -1), *(task.iteration for task in ended[address])])
        return ended

    def _takes_part(self, address: str, iteration: int) -> bool:
        return self._ended.get(address, -1) < iteration


def serve_dispatcher() -> None:
    """Serve as the dispatcher at this task's address until stopped; its journal is below the run's `train_dir`."""
    import tensorflow as tf

    service = tf.data.experimental.service
    journal = os.environ["TFDEPLOY_TRAIN_DIR"] + "/data_service"
    config = service.DispatcherConfig(port=_own_port(), protocol="grpc", work_dir=journal, fault_tolerant_mode=True)
    server = service.DispatchServer(config)
    print(f"dispatcher of tf.data service, with its journal in {journal}", flush=True)
    threading.Thread(target=_watch_workers, daemon=True).start()
    server.join()


def serve_worker() -> None:
    """Serve as a worker at this task's address until stopped."""
    import tensorflow as tf

    service, address = tf.data.experimental.service, os.environ["TFDEPLOY_ADDRESS"]
    dispatcher = data_service_address(os.environ["TFDEPLOY_DATA_SERVICE"])
    config = service.WorkerConfig(
        dispatcher_address=dispatcher, worker_address=address, port=_own_port(), protocol="grpc"
    )
    server = service.WorkerServer(config)
    print(f"worker of tf.data service at {address}", flush=True)
    server.join()


def _own_port() -> int:
    return int(os.environ["TFDEPLOY_ADDRESS"].rpartition(":")[2])


def _watch_workers() -> None:
    """End the parts of lost workers in each epoch, for ever. If the calls fail, the dispatcher serves on without that."""
    dispatcher, lost, has_failed = DataDispatcher(f"127.0.0.1:{_own_port()}"), LostWorkers(), False
    while True:
        time.sleep(_POLL_SECONDS)
        try:
            end_parts(dispatcher, lost, _responds, time.monotonic())
            has_failed = False
        except DispatcherError as error:
            if not has_failed:
                print(f"while this lasts, an epoch waits for workers that were removed during it: {error}", flush=True)
            has_failed = True


def end_parts(dispatcher: DataDispatcher, lost: LostWorkers, responds: Callable[[str], bool], now: float) -> None:
    """End the parts of the workers that are lost now.

    Raises:
        DispatcherError: a call has failed.
    """
    workers = dispatcher.workers()
    responding = {address for address in workers if responds(address)}
    tasks = {address: dispatcher.tasks(address) for address in lost.observe(workers, responding, now)}
    for address, ended in lost.tasks_to_end(tasks, responding).items():
        if ended:
            print(f"{address} does not respond: the other workers complete the epoch", flush=True)
            dispatcher.end_tasks(address, ended)


def _responds(address: str) -> bool:
    host, _, port = address.rpartition(":")
    return is_listening(host, int(port), _CONNECT_SECONDS)
