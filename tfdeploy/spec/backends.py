"""The table of backends. Pure: modules are named here, not imported."""

from dataclasses import dataclass

from ..errors import SpecError

_PLATFORMS = {"darwin": "macOS", "win32": "Windows"}


@dataclass(frozen=True)
class BackendEntry:
    """One backend."""

    module: str
    """The module that has `BACKEND`, a `backends.base.Backend`."""
    groups: tuple[str, ...] = ()
    """The groups of arguments that it uses; other groups are validated and left out."""

    needs_linux: bool = False
    """Whether its tasks are processes of this machine."""

    is_billed: bool = False
    """Whether its machines cost money."""

    @property
    def runs_containers(self) -> bool:
        """Whether tasks are containers: then the image may name the command."""
        return "container" in self.groups


BACKENDS: dict[str, BackendEntry] = {
    "local": BackendEntry("tfdeploy.backends.local.backend", needs_linux=True),
    "docker": BackendEntry("tfdeploy.backends.docker.backend", ("container", "docker")),
    "ec2": BackendEntry("tfdeploy.backends.ec2.backend", ("container", "ec2"), is_billed=True),
}
"""Each value of the argument `backend`. A new backend is one entry here."""


def refuse_platform(name: str, platform: str) -> None:
    """Refuse a backend that runs tasks as processes of this machine, if it is not Linux. `platform` is as in `sys.platform`.

    Raises:
        SpecError: with the backends that can be used from here.
    """
    if not BACKENDS[name].needs_linux or platform == "linux":
        return
    remedy = (
        "Run the tasks as containers, or on machines of Amazon EC2. Both work from here: "
        "pulumi config set tfdeploy:backend docker, or ec2."
    )
    raise SpecError("backend", f"{name!r} needs Linux, and this is {_PLATFORMS.get(platform, platform)}", remedy)


def install_advice(extra: str) -> str:
    """The commands that install what an extra of the package has. tfdeploy is not on PyPI."""
    return f"`make setup-{extra}` in a clone of tfdeploy; or pip install '/path/to/tfdeploy[{extra}]' in your own environment"
