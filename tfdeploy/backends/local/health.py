"""Whether this machine has what local clusters need."""

import ipaddress
import socket
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import psutil

from ..base import FAIL, OK, WARN, Check

_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tf-nightly")
_SHOWN = 3
"""How many addresses are told."""

_PORTS = "20000 to 31999"


def health(place: str = "") -> list[Check]:
    """TensorFlow, TensorBoard, and who could reach the tasks."""
    addresses = [
        one.address for found in psutil.net_if_addrs().values() for one in found if one.family == socket.AF_INET
    ]
    return [_tensorflow(), _tensorboard(), open_to(addresses)]


def open_to(addresses: list[str]) -> Check:
    """TensorFlow's servers trust everyone, and listen on every address. Pure."""
    outside = [one for one in addresses if not ipaddress.ip_address(one).is_loopback]
    public = [one for one in outside if ipaddress.ip_address(one).is_global]
    if not outside:
        return Check("network", OK, "this machine has no address but its own")
    more = f" and {len(outside) - _SHOWN} more" if len(outside) > _SHOWN else ""
    shown = ", ".join([*public, *(one for one in outside if one not in public)][:_SHOWN])
    said = f"TensorFlow's servers trust everyone and listen on {shown}{more}"
    if public:
        return Check("network", WARN, said, f"Put a firewall before the ports {_PORTS}.")
    return Check("network", OK, f"{said}: on a network of strangers, put a firewall before the ports {_PORTS}")


def _tensorflow() -> Check:
    if find_spec("tensorflow") is None:
        return Check("tensorflow", FAIL, "is not installed", "pip install 'pulumi-tfdeploy[local]'")
    return Check("tensorflow", OK, _version(*_TENSORFLOW))


def _tensorboard() -> Check:
    if find_spec("tensorboard") is None:
        return Check("tensorboard", WARN, "is not installed", "pip install tensorboard")
    return Check("tensorboard", OK, _version("tensorboard", "tb-nightly"))


def _version(*names: str) -> str:
    for name in names:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return "installed, of an unknown version"
