"""Which tests share a process of a run, because they share what is slow to make: a file's tests always do."""

from typing import Any

import pytest

SHARED = {"box": ("ec2", "ec2 again", "box"), "nested": ("swarm",), "kube": ("kube",)}
"""Fixtures of a whole process, to the groups of all tests that use them."""

MEMBERS: dict[str, tuple[str, ...]] = {
    # Three groups make a box each, because its tests mostly wait for machines: one after the other they would end after all others.
    "box": ("tests/box/", "[ec2]", "test_kelda.py::test_machines_and_tasks_of_one_program"),
    "ec2 again": ("ec2/test_ends.py", "ec2/test_replaced.py", "ec2/test_moves.py"),
    "ec2": ("tests/ec2/",),
    "kube": ("tests/kube/", "tests/kubernetes/", "[kubernetes]"),
    "swarm": (
        *("docker/test_swarm.py", "docker/test_placement.py"),
        "test_builds.py::test_an_image_is_pushed_and_pulled_by_other_machines",
    ),
}
"""What the ids of a group's tests contain, the first group that fits: the scheduler knows no more of a test than its id."""


def group(test: str) -> str:
    """The group of a test; its file, where it is in no other."""
    for name, members in MEMBERS.items():
        if any(member in test for member in members):
            return name
    return test.partition("::")[0]


class Groups:
    """The scheduler of a run in several processes, and a check of the table above."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Deal out whole groups."""
        from xdist.scheduler.loadscope import LoadScopeScheduling

        class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
            def _split_scope(self, nodeid: str) -> str:
                return group(nodeid)

        return GroupScheduling(config, log)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Who uses a shared fixture is in one of its groups. Groups start in the order of their first tests."""
        for item in items:
            for fixture in getattr(item, "fixturenames", ()):
                expected = SHARED.get(fixture)
                if expected and group(item.nodeid) not in expected:
                    raise pytest.UsageError(
                        f"{item.nodeid} uses `{fixture}`: add it to one of {expected} in {__file__}"
                    )
        # Those with the box first: the unit tests empty moto's account, which all of a process share.
        items.sort(key=lambda item: group(item.nodeid) not in SHARED["box"])
