"""Faults that every backend knows: commands at any moment, a killed command, the owner of the cluster beside it."""

from contextlib import suppress

import psutil

from tests.chaos.cluster import Apply, Cluster, Running
from tests.chaos.process_faults import suspend_for
from tests.chaos.schedule import Kind, Step


def command(name: str, of_task: bool = False) -> Apply:
    """A fault that is a command of the user's."""

    def apply(cluster: Cluster, step: Step, running: Running | None) -> str:
        text = f"{name} {step.task} --yes" if of_task else name
        cluster.command(text)
        return text

    return apply


def destroy(cluster: Cluster, step: Step, running: Running | None) -> str:
    """Destroy the cluster; mostly it is then created again, so that the faults after it meet a new life."""
    cluster.command("destroy")
    if step.amount < 0.8:
        cluster.command("up")
        return "destroyed, and created again"
    return "destroyed"


def kill_pulumi(cluster: Cluster, step: Step, running: Running | None) -> str:
    """The command is killed, wherever it is then."""
    if running is None or running.process.poll() is not None:
        return ""
    cluster.kill(running)
    return f"killed `{running.name}`"


def suspend_pulumi(cluster: Cluster, step: Step, running: Running | None) -> str:
    """The command, with all that it has started, is suspended for a while, as by Ctrl-Z or by a laptop that is closed."""
    if running is None:
        return ""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(running.process.pid)
        suspended = suspend_for(cluster.story, 3 * step.seconds, [process, *process.children(recursive=True)])
        return f"`{running.name}` is suspended for {3 * step.seconds:.1f} s ({suspended} processes)"
    return ""


COMMON: dict[str, tuple[Kind, Apply]] = {
    "up": (Kind(touches=False), command("up")),
    "refresh": (Kind(touches=False), command("refresh")),
    "heal": (Kind(touches=False), command("restart --lost")),
    "destroy": (Kind(during=False), destroy),
    "restart": (Kind(tasks=True), command("restart", of_task=True)),
    "replace": (Kind(tasks=True), command("restart --without-data", of_task=True)),
    "kill_pulumi": (Kind(weight=4, alone=False, touches=False), kill_pulumi),
    "suspend_pulumi": (Kind(weight=2, alone=False, touches=False), suspend_pulumi),
}
"""Name to what the draw needs to know of a fault, and what it does."""
