"""The table of backends. Pure: modules are named here, not imported."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..errors import SpecError

_PLATFORMS = {"darwin": "macOS", "win32": "Windows"}


class BackendEntry(NamedTuple):
    """What one backend can do."""

    module: str
    """The module that has `BACKEND`, a `backends.backend.Backend`."""
    groups: tuple[str, ...] = ()
    """The groups of arguments that it uses; other groups are validated and left out."""

    configured_place: Callable[[Mapping[str, str]], str] | None = None
    """The address or the region that a stack's configuration names; empty for the default of the backend's own tools. None where tasks
    are processes of this computer: then there is no other place, and clusters are folders of the user's state folder."""

    packages: tuple[str, ...] = ()
    """The packages of Python that it uses, whose versions the report has."""

    has_users_of_this_computer: bool = False
    """Whether the number of a user of this computer is that of the same user there."""

    loses_machines_from: int = 0
    """With so many machines or more, one can be lost while the record stays, and another takes its place. 0: never."""
    is_beta: bool = False
    """It was tested only in an emulation; docs/limits.md says which."""

    @property
    def runs_containers(self) -> bool:
        """Whether tasks are containers: then the image may name the command."""
        return "container" in self.groups


def _ec2_place(settings: Mapping[str, str]) -> str:
    region = settings.get("tfdeploy:ec2.region") or settings.get("aws:region", "")
    profile = settings.get("aws:profile", "")
    return f"{profile}@{region}" if profile else region


DEFAULT_BACKEND = "local"

JOB_MAPPINGS = ("jobs", "services")
"""The arguments that are mappings of jobs, each with groups of its own."""

BACKENDS: dict[str, BackendEntry] = {
    "local": BackendEntry("tfdeploy.backends.local.backend"),
    "docker": BackendEntry(
        "tfdeploy.backends.docker.backend",
        ("container", "docker"),
        configured_place=lambda settings: settings.get("tfdeploy:docker.host", ""),
        packages=("docker", "pulumi-docker"),
        has_users_of_this_computer=True,
        loses_machines_from=2,
    ),
    "ec2": BackendEntry(
        "tfdeploy.backends.ec2.backend",
        ("container", "ec2"),
        configured_place=_ec2_place,
        packages=("pulumi-aws",),
        loses_machines_from=1,
        is_beta=True,
    ),
    "kubernetes": BackendEntry(
        "tfdeploy.backends.kubernetes.backend",
        ("container", "kubernetes"),
        configured_place=lambda settings: settings.get("tfdeploy:kubernetes.context", ""),
        packages=("kubernetes",),
        loses_machines_from=1,
    ),
}
"""Each value of the argument `backend`. A new backend is one entry here."""


BACKEND_GROUPS = tuple(dict.fromkeys(group for entry in BACKENDS.values() for group in entry.groups))
"""The groups of arguments that only some backends use."""


def backend_entry(name: str) -> BackendEntry:
    """The backend of that name.

    Raises:
        SpecError: the table has none.
    """
    if name not in BACKENDS:
        raise SpecError("backend", f"{name!r} is unknown", f"It takes one of: {', '.join(BACKENDS)}.")
    return BACKENDS[name]


def is_this_computer(name: str) -> bool:
    """Whether this is a backend whose tasks are processes of this computer, which must be Linux."""
    return name in BACKENDS and BACKENDS[name].configured_place is None


def refuse_platform(name: str, platform: str) -> None:
    """Refuse a backend that runs tasks as processes of this machine, if it is not Linux. `platform` is as in `sys.platform`.

    Raises:
        SpecError: with the backends that can be used from here.
    """
    if not is_this_computer(name) or platform == "linux":
        return
    remedy = (
        "Run the tasks as containers, as pods of Kubernetes, or on machines of Amazon EC2. All work from here: "
        "pulumi config set tfdeploy:backend docker, kubernetes or ec2."
    )
    raise SpecError("backend", f"{name!r} needs Linux, and this is {_PLATFORMS.get(platform, platform)}", remedy)


def install_advice(extra: str) -> str:
    """The commands that install what an extra of the package has. tfdeploy is not on PyPI."""
    return f"`make setup-{extra}` in a clone of tfdeploy; or pip install '/path/to/tfdeploy[{extra}]' in your own environment"
