"""Faults that every backend knows: commands at any moment, a killed command, the owner of the cluster beside it."""

from tests.chaos.cluster import Apply, Cluster, Running
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


COMMON: dict[str, tuple[Kind, Apply]] = {
    "up": (Kind(), command("up")),
    "refresh": (Kind(), command("refresh")),
    "heal": (Kind(), command("heal")),
    "destroy": (Kind(during=False), destroy),
    "restart": (Kind(tasks=True), command("restart", of_task=True)),
    "replace": (Kind(tasks=True), command("replace", of_task=True)),
    "kill_pulumi": (Kind(weight=4, alone=False), kill_pulumi),
}
"""Name to what the draw needs to know of a fault, and what it does."""
