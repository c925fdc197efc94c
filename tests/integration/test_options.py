"""Pulumi's resource options on a cluster have the effect that they have on other components."""

from typing import Any

import pytest

from tests.integration.conftest import Project

HEAD = """\
import pulumi
from tfdeploy import TensorFlowCluster

"""
ARGUMENTS = "command=['python', 'train.py', {argument!r}], code='code', workers=1, restart={{'maximum': 0}}"
EXPORTS = "pulumi.export('state', cluster.state)\npulumi.export('run', cluster.run)\n"


def write(project: Project, options: str, argument: str = "first", before: str = "") -> None:
    """Write a program with one cluster that has these options."""
    options = f"opts=pulumi.ResourceOptions({options})"
    cluster = f"cluster = TensorFlowCluster('test', {ARGUMENTS.format(argument=argument)}, {options})\n"
    project.write("", "import sys\nprint('argument', *sys.argv[1:2])", HEAD + before + cluster + EXPORTS)


GROUP = """\
class Group(pulumi.ComponentResource):
    def __init__(self):
        super().__init__("test:index:Group", "group")
        self.register_outputs({})

"""
MOVED = "parent=Group(), aliases=[pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)]"


def test_with_an_alias_a_cluster_moves_to_another_parent_and_stays_the_same(project: Project) -> None:
    write(project, "")
    project.up()
    cluster, run = project.ref()["id"], project.outputs()["run"]
    write(project, MOVED, before=GROUP)
    moved = project.up()
    assert "deleted" not in moved.steps()
    assert "replaced" not in moved.steps()
    assert (project.ref()["id"], project.outputs()["run"]) == (cluster, run)
    project.destroy()


def test_an_alias_does_not_rename_a_cluster(project: Project) -> None:
    write(project, "")
    program = project.program / "__main__.py"
    program.write_text(program.read_text().replace("'test'", "'former'"))
    project.up()
    urn = "urn:pulumi:test::project::tfdeploy:index:TensorFlowCluster::former"
    for alias in ("pulumi.Alias(name='former')", repr(urn)):
        write(project, f"aliases=[{alias}]")
        refused = project.up(fails=True)
        assert "test: aliases: the cluster 'former' cannot be renamed" in refused.output
        assert refused.touched() == set()
        assert {ref["name"] for ref in project.refs()} == {"former"}
    project.destroy()


def write_dependent(project: Project, code: str, value: str, more: str = "") -> None:
    """A program in which a resource depends on a cluster that trains with this code."""
    arguments = ARGUMENTS.format(argument="first") + more
    program = f"{HEAD}cluster = TensorFlowCluster('test', {arguments})\n{EXPORTS}"
    after = f"pulumi.Stash('after', input={value!r}, opts=pulumi.ResourceOptions(depends_on=[cluster]))\n"
    project.write("", code, program + after)


def dependent(project: Project) -> dict[str, Any]:
    """What the state has of the resource that depends on the cluster; empty for nothing."""
    return next((one for one in project.resources() if one["urn"].endswith("::after")), {})


FAILS = "import time\ntime.sleep(1)\nraise SystemExit(3)"
WAITS = "import time\ntime.sleep(600)"


@pytest.mark.parametrize("more", ["", ", env={'A': pulumi.Output.from_input('b')}"], ids=["plain", "outputs"])
def test_what_depends_on_a_cluster_is_created_after_the_success_of_its_run(project: Project, more: str) -> None:
    write_dependent(project, FAILS, "first", more)
    failed = project.up(fails=True)
    assert (
        "test: what depends on this cluster was neither created nor updated, because its run failed." in failed.output
    )
    assert "Traceback" not in failed.output
    assert dependent(project) == {}
    assert project.shown()["state"] == project.outputs()["state"] == "failed"
    write_dependent(project, "print('fine')", "second", more)
    project.up()
    assert dependent(project)["inputs"]["input"] == "second"
    assert "test-run" in {urn.rpartition("::")[2] for urn in dependent(project)["dependencies"]}
    write_dependent(project, FAILS, "third", more)
    project.up(fails=True)
    assert dependent(project)["inputs"]["input"] == "second", "it is neither updated nor deleted"
    project.destroy()


def test_what_depends_on_a_run_that_goes_on_is_created_where_the_update_does_not_wait(project: Project) -> None:
    write_dependent(project, WAITS, "first", ", wait='1s'")
    assert (
        "test: what depends on this cluster was neither created nor updated: its run is"
        in project.up(fails=True).output
    )
    assert dependent(project) == {}
    project.up(env={"TFDEPLOY_WAIT": "0"})
    assert dependent(project)
    project.destroy()
