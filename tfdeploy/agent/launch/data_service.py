"""tf.data service: the programs of its dispatcher and of its workers, with the TensorFlow of the image.

TensorFlow's dispatcher never ends an epoch before every worker has reported the end of its part. A worker that was removed does not, so
this dispatcher reports it instead.
"""

import os
import threading
import time
from typing import Callable, Dict, List, Mapping, Sequence, Set

from ..task_command import data_service_address
from .data_dispatcher import DataDispatcher, DataTask, DispatcherError
from .ports import is_listening

LOST_SECONDS = 20.0
"""A worker that accepts no connection for so long is lost: a restart takes less. If it returns, it takes part in the next epoch."""

_POLL_SECONDS = 2.0
_CONNECT_SECONDS = 2.0


class LostWorkers:
    """Decides which parts of an epoch end without their worker."""

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
