"""What stands on an engine: to be compared before and after."""

from tests.engine.cli import docker

KINDS = {
    "container": ["--all"],
    "service": [],
    "network": [],
    "config": [],
    "secret": [],
    "volume": [],
    "image": ["--no-trunc"],
}


def inventory(address: str) -> dict[str, set[str]]:
    """The ids of all that an engine has, by kind; of volumes, the names."""
    return {kind: set(docker(address, kind, "ls", "--quiet", *more).split()) for kind, more in KINDS.items()}
