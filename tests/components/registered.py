"""A cluster that stands without Pulumi, so that the command finds it."""

from pathlib import Path

from tests.components.conftest import Standing
from tests.verbs import Verbs
from tfdeploy import registry
from tfdeploy.registry import Entry
from tfdeploy.report.expected_state import expected_state


def lock_of(standing: Standing, stacks: Path) -> Path:
    """The file of an update that runs, where Pulumi has these stacks."""
    project, stack = standing.cluster["project"], standing.cluster["stack"]
    lock = stacks / ".pulumi/locks/organization" / project / stack / "of-another-update.json"
    lock.parent.mkdir(parents=True)
    lock.touch()
    return lock


def verbs_of(standing: Standing) -> Verbs:
    """The command, in the folder of a program whose stack has that cluster."""
    folder, cluster = standing.folder, standing.cluster
    (folder / "Pulumi.yaml").write_text(f"name: {cluster['project']}\n")
    registry.write(Entry(cluster, str(folder), expected_state(standing.plan, standing.spec), begun=1.0))
    return Verbs(folder)
