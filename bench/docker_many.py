"""Many tasks on one engine: created, against as many `docker service create` of the same definition; and observed."""

import itertools
import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.engine.images import python_image
from tfdeploy.backends.docker.backend import BACKEND
from tfdeploy.backends.docker.labels import service_name
from tfdeploy.backends.docker.swarm.services import Reference, task_service
from tfdeploy.backends.zipapp import application

from .baselines.containers import like_task, services
from .engine import STACK, UP, workplace
from .needs import image_of
from .pairs import by_turns, log
from .processes import docker, until
from .swarm import OnSwarm, on_swarm
from .table import Row, limit, ratio

TASKS = 100
_PAIRS = 5
_AT_ONCE = 4
_OBSERVATIONS = 5
_FOREVER = ["python3", "-c", "import time; time.sleep(1000000)"]
_SECONDS = 600.0


def run() -> list[Row]:
    """Each measurement creates everything again; the last cluster is observed."""
    image = image_of(python_image)
    number = itertools.count()
    observations: list[float] = []
    templates: list[Mapping[str, Any]] = []
    with workplace() as place:
        files = {"config": place.folder / "agent.pyz", "secret": place.folder / "token"}
        files["config"].write_bytes(application())
        files["secret"].write_text("a-token")

        def ours() -> float:
            config = {"tfdeploy:workers": 1, "tfdeploy:command": _FOREVER, "tfdeploy:wait": "0"}
            with on_swarm(place, f"ours-{next(number)}", image, config) as cluster:
                cluster.made.ship("quick.py")
                cluster.made.pulumi(*UP)
                seconds = _created(cluster, templates)
                cluster.made.configure({"tfdeploy:workers": 1 + TASKS})
                cluster.made.pulumi(*UP)
                _observe(cluster, observations)
            return seconds

        def peer() -> float:
            name = f"{STACK}-same"
            definitions = [like_task(template, name) for template in templates[-TASKS:]]
            with services(name, definitions, _AT_ONCE, files) as seconds:
                return seconds

        mine, other = by_turns(_PAIRS, f"{TASKS} tasks", ours, peer)
    measure = f"{TASKS} tasks until all run on one engine, by the backend, against `docker service create`"
    return [
        ratio(f"{measure} of the same definition, {_AT_ONCE} at once", mine, other, 1.2),
        limit(f"one observation of {TASKS} tasks on one manager (the slowest)", observations, 0.5, " s"),
    ]


def _created(cluster: OnSwarm, templates: list[Mapping[str, Any]]) -> float:
    """Seconds until so many tasks more run, created by the functions that Pulumi's plugin calls, with the inputs that it would pass."""
    state = json.loads(cluster.made.call("stack", "export", "--show-secrets"))
    inputs = next(
        item["inputs"] for item in state["deployment"]["resources"] if item["urn"].endswith("::bench-worker-0")
    )
    inputs["token"] = json.loads(inputs["token"]["plaintext"])  # a secret
    props: list[Any] = [{**inputs, "hostname": f"worker-{index}", "index": index} for index in range(1, 1 + TASKS)]
    token = Reference(id="", name="")  # the peer's services have another one
    dependencies = {**inputs["dependencies"], "launcher_token": token}
    defined: list[Any] = [{**item, "dependencies": dependencies} for item in props]
    templates += [task_service(item).template for item in defined]
    # As in a first `up`, in which tasks start before the controller.
    docker("service", "rm", service_name(cluster.handle, "controller"))
    until(lambda: len(cluster.containers()) == 1, "the controller's end", seconds=_SECONDS)
    begun = time.perf_counter()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(BACKEND.runner.create_task, props))
    log(f"{TASKS} services made after {time.perf_counter() - begun:.1f} s")
    until(lambda: len(cluster.containers()) == 1 + TASKS, f"{TASKS} tasks", cluster, seconds=_SECONDS)
    return time.perf_counter() - begun


def _observe(cluster: OnSwarm, observations: list[float]) -> None:
    """Some observations, once all tasks run."""

    def all_run() -> bool:
        job = cluster.observe().run_state
        return job is not None and all(task.state == "running" for task in job.tasks.values())

    until(all_run, f"{TASKS} tasks that run", cluster, seconds=_SECONDS)
    for _ in range(_OBSERVATIONS):
        begun = time.perf_counter()
        cluster.observe(20)
        observations.append(time.perf_counter() - begun)
    latest = ", ".join(f"{seconds:.2f}" for seconds in observations[-_OBSERVATIONS:])
    log(f"observations: {latest} s")
