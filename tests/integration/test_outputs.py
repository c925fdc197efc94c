"""The arguments of a cluster come from other resources of the program, and from other stacks."""

from tests.integration.conftest import Call, Project

MADE = """\
import pulumi
from pulumi.dynamic import CreateResult, DiffResult, Resource, ResourceProvider, UpdateResult


class Provider(ResourceProvider):
    def create(self, props):
        return CreateResult("made", {**props, "value": props["given"]})

    def diff(self, _id, olds, news):
        return DiffResult(changes=olds["given"] != news["given"])

    def update(self, _id, olds, news):
        return UpdateResult({**news, "value": news["given"]})

    def delete(self, _id, props):
        print("the resource is deleted")


class Made(Resource, module="test", name="Made"):
    value: pulumi.Output

    def __init__(self, name, given, opts=None):
        super().__init__(Provider(), name, {"given": given, "value": None}, opts)
"""
"""A resource with an output that a preview does not know."""

PROGRAM = """\
import pulumi
from made import Made
from tfdeploy import TensorFlowCluster

cluster = TensorFlowCluster("test", {arguments})
for name in ("status", "tasks", "state", "logs"):
    pulumi.export(name, getattr(cluster, name))
"""

SCRIPT = """\
import os, sys
print("bucket", os.environ.get("BUCKET"), "key", len(os.environ.get("KEY", "")), *sys.argv[1:2])
"""

COMMAND = "code='code', command=['python', 'train.py']"
CANARY = "canary-5e1f"


def written(project: Project, arguments: str, program: str = PROGRAM) -> None:
    project.write(arguments, SCRIPT, program)
    (project.program / "made.py").write_text(MADE)


def previewed(project: Project) -> Call:
    done = project.call("preview", "--stack", project.stack)
    assert done.exit_code == 0, done.output
    return done


PARTS = (
    "workers=1, code='code', command=['python', 'train.py', pulumi.Output.concat('--data=', Made('data', 'd1').value)],"
    "env={'BUCKET': Made('bucket', 'b1').value, 'KEY': pulumi.Config().require_secret('key')}"
)


def test_a_run_with_outputs_is_previewed_runs_once_and_is_deleted_before_what_it_uses(project: Project) -> None:
    written(project, PARTS)
    project.set("key", CANARY, "--secret")
    first = previewed(project).output
    assert "`command[2]` is known after the update" in first
    assert "`env.BUCKET` is known after the update" in first
    assert "test on local: run <the run's id" in first
    assert "test-worker-0" in first

    project.up()
    assert f"bucket b1 key {len(CANARY)} --data=d1" in project.log("worker-0")
    assert CANARY not in project.call("stack", "export", "--stack", project.stack).output

    assert "`env.BUCKET` is known" not in previewed(project).output
    assert project.up().touched() == set()

    changed = PARTS.replace("'b1'", "'b2'")
    written(project, changed)
    project.up()
    assert "bucket b2" in project.log("worker-0")

    done = project.destroy().output
    assert done.index("test-cleanup") < done.index("the resource is deleted")


def test_a_preview_that_cannot_plan_a_cluster_shows_the_resources_of_an_existing_one_as_they_are(
    project: Project,
) -> None:
    protected = f"{COMMAND}, opts=pulumi.ResourceOptions(protect=True)"
    written(project, f"workers=Made('count', 2).value, {protected}")
    first = previewed(project).output
    assert "test: this preview cannot show the cluster, because only the update knows `workers`" in first
    assert "test-worker" not in first
    project.up()
    assert set(project.statuses()) == {"worker-0", "worker-1"}
    assert project.up().touched() == set()
    written(project, f"workers=Made('count', 3).value, {protected}")
    preview = previewed(project).output
    assert "only the update knows `workers`; its resources are shown as they are now." in preview
    assert "~ 1 to update\n    7 unchanged\n" in preview
    assert "delete" not in preview
    assert project.up().touched() == {"count", "test-cleanup", "test-run", "test-worker-2"}


def test_a_target_is_updated_without_the_cluster(project: Project) -> None:
    arguments = f"workers=1, env={{'BUCKET': Made('bucket', 'b1').value}}, {COMMAND}"
    written(project, arguments, f"{PROGRAM}Made('other', 'x')\n")
    assert project.up("--target", "**other").touched() == {"other"}
    assert project.up().touched() == {"bucket", "test-cleanup", "test-worker-0", "test-run"}
    written(project, arguments, f"{PROGRAM}Made('other', 'y')\n")
    assert project.up("--target", "**other").touched() == {"other"}
    project.destroy()
