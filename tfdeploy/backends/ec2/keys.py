"""The user's key for ssh: the public half goes to AWS, the private one stays where it is."""

import re
from pathlib import Path

from ...errors import SpecError
from ...spec import ClusterSpec

_NAMES = ("id_ed25519.pub", "id_rsa.pub")
"""EC2 takes these two kinds: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-key-pairs.html."""

_PUBLIC = re.compile(r"(ssh-ed25519|ssh-rsa) [A-Za-z0-9+/=]+( .*)?")


def found(spec: ClusterSpec) -> Path:
    """The file of the public key.

    Raises:
        SpecError: there is none.
    """
    where = f"{spec.name}: ssh_key"
    if spec.fleet.ssh_key:
        path = Path(spec.fleet.ssh_key).expanduser().absolute()
        if not path.is_file():
            raise SpecError(where, f"there is no file {path}", "Name the file of your public key.")
        return path
    folder = Path.home() / ".ssh"
    for name in _NAMES:
        if (folder / name).is_file():
            return folder / name
    wrong = f"is not given, and {folder} has neither {' nor '.join(_NAMES)}"
    raise SpecError(where, wrong, "Make one by `ssh-keygen -t ed25519`, or name the file of your public key.")


def public(spec: ClusterSpec) -> str:
    """The public key.

    Raises:
        SpecError: the file holds none that EC2 takes.
    """
    path = found(spec)
    text = path.read_text(errors="replace").strip()
    if not _PUBLIC.fullmatch(text):
        what = "a private key" if "PRIVATE KEY" in text else "no public key of the kinds that EC2 takes"
        remedy = "Name the file of an ed25519 or RSA public key; it ends with .pub."
        raise SpecError(f"{spec.name}: ssh_key", f"{path} holds {what}", remedy)
    return text


def private(public_key: Path) -> str:
    """The file of the private half, where it is beside the public one; empty where an agent must have it."""
    path = public_key.with_suffix("")
    return str(path) if public_key.suffix == ".pub" and path.is_file() else ""
