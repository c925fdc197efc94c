"""Rounds: bring a cluster up, let the drawn faults happen, heal them, and compare what is left with the invariants."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.chaos import box, kube, local, machines, swarm
from tests.chaos.cluster import Apply, Cluster
from tests.chaos.disk import own_disk
from tests.chaos.invariants import broken
from tests.chaos.neighbour import OTHER, Neighbour
from tests.chaos.sampler import Sampler
from tests.chaos.schedule import Kind, Round, Step, draw

STALL_SECONDS = 3.0
"""A fault that waits for progress happens anyway when the training has stood still for so long."""


class Log:
    """What happens, for people and as JSON lines."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w")
        self.path = path

    def write(self, text: str, **facts: Any) -> None:
        """One entry."""
        print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)
        self._file.write(json.dumps(facts) + "\n")
        self._file.flush()


@dataclass(frozen=True)
class Backend:
    """What a backend brings to the rounds."""

    faults: Mapping[str, tuple[Kind, Apply]]
    site: Callable[[Path], AbstractContextManager[Callable[[Path, str], Cluster]]]
    """Prepares a folder for all rounds; what it yields makes a cluster in a folder, for a stack."""

    @property
    def kinds(self) -> dict[str, Kind]:
        """What the draw needs to know of all faults."""
        return {name: kind for name, (kind, _) in self.faults.items()} | OTHER


@contextmanager
def _local(folder: Path) -> Iterator[Callable[[Path, str], Cluster]]:
    state = folder / "state"
    shared = local.Shared(state, own_disk(state))
    yield lambda where, stack: local.LocalCluster(where, shared, stack)


@contextmanager
def _swarm(folder: Path) -> Iterator[Callable[[Path, str], Cluster]]:
    with swarm.shared() as shared:
        yield lambda where, stack: swarm.SwarmCluster(where, shared, stack)


@contextmanager
def _box(folder: Path) -> Iterator[Callable[[Path, str], Cluster]]:
    with box.shared() as shared:
        yield lambda where, stack: box.BoxCluster(where, shared, stack)


@contextmanager
def _machines(folder: Path) -> Iterator[Callable[[Path, str], Cluster]]:
    with machines.shared() as shared:
        yield lambda where, stack: machines.MachinesCluster(where, shared, stack)


@contextmanager
def _kubernetes(folder: Path) -> Iterator[Callable[[Path, str], Cluster]]:
    with kube.shared() as shared:
        yield lambda where, stack: kube.KubernetesCluster(where, shared, stack)


BACKENDS = {
    "docker": Backend(swarm.FAULTS, _swarm),
    "ec2": Backend(box.FAULTS, _box),
    "kubernetes": Backend(kube.FAULTS, _kubernetes),
    "local": Backend(local.FAULTS, _local),
    "machines": Backend(machines.FAULTS, _machines),
}


def play(name: str, seed: int, numbers: Sequence[int], folder: Path, log: Log) -> int:
    """Play these rounds; 1 when an invariant was broken."""
    backend, begun = BACKENDS[name], time.monotonic()
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with backend.site(folder) as make, Neighbour(make, folder / "neighbour") as neighbour:
        for number in numbers:
            drawn = draw(seed, number, backend.kinds)
            found = _round(backend, drawn, make(folder / f"round-{number}", "test"), neighbour, log, counts)
            wrong += [f"round {number}: {one}" for one in found]
    seconds = time.monotonic() - begun
    summary = {
        "rounds": len(numbers),
        "faults": dict(sorted(counts.items())),
        "broken": wrong,
        "seconds": round(seconds),
    }
    log.write(f"{len(numbers)} rounds, {counts.total()} faults, {len(wrong)} broken, {seconds:.0f} s", **summary)
    log.write(f"the log is {log.path}; replay: --backend {name} --seed {seed} --first N --rounds 1")
    return 1 if wrong else 0


def _round(
    backend: Backend, drawn: Round, cluster: Cluster, neighbour: Neighbour, log: Log, counts: Counter[str]
) -> list[str]:
    begun, number = time.monotonic(), drawn.number
    log.write(f"round {number} of seed {drawn.seed}", round=number, seed=drawn.seed)
    try:
        cluster.write(drawn.clock_steps)
        cluster.project.init()
        with Sampler(cluster.folder) as sampler:
            cluster.command("up", must=True)
            for step in drawn.steps:
                done = _happen(backend, step, cluster, neighbour)
                counts[step.fault] += bool(done)
                words = f"{step.fault} {step.task} {f'during {step.during}' if step.during else ''}"
                log.write(f"  {step.at:.2f} {words}: {done or 'omitted'}", round=number, step=step.to_dict(), done=done)
            threading.Event().wait(max(0.0, cluster.story.until - time.monotonic()))
            cluster.heal()
            seen = cluster.observe()
        cluster.story.neighbour += neighbour.changes(cluster.story.machines_failed)
        found = broken(replace(seen, samples=sampler.samples))
    except Exception as error:
        found = [f"the round itself failed: {type(error).__name__}: {error}"]
    finally:
        cluster.close()
    seconds = time.monotonic() - begun
    log.write(f"  {len(found)} broken, {seconds:.0f} s", round=number, broken=found, seconds=round(seconds, 1))
    for one in found:
        log.write(f"  BROKEN {one}", round=number, invariant=one)
    return found


def _happen(backend: Backend, step: Step, cluster: Cluster, neighbour: Neighbour) -> str:
    """Wait for the moment, start the command during which it happens, and let it happen; what was done."""
    cluster.until_done(step.at, STALL_SECONDS)
    if step.fault in neighbour.FAULTS:
        return neighbour.happen(step)
    kind, apply = backend.faults[step.fault]
    running = cluster.start(step.during) if step.during else None
    threading.Event().wait(step.delay)
    with cluster.touch(step.task) if kind.touches else nullcontext():
        done = apply(cluster, step, running)
    if running is None:
        return done
    if step.during == "destroy" and done:
        cluster.note("cut")
    cluster.finish(running)
    return done
