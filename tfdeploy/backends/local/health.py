"""Whether this machine has what local clusters need."""

import ipaddress
import socket
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import psutil

from ...spec.backends import install_advice
from ..base import FAIL, OK, WARN, Check

_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tf-nightly")
_SHOWN = 3
"""How many addresses are printed."""

_PORTS = "20000 to 31999"


def health(place: str = "") -> list[Check]:
    """TensorFlow, TensorBoard, and from where the tasks can be reached."""
    addresses = [
        address.address
        for addresses_of_interface in psutil.net_if_addrs().values()
        for address in addresses_of_interface
        if address.family == socket.AF_INET
    ]
    return [_tensorflow(), _tensorboard(), network_check(addresses)]


def network_check(addresses: list[str]) -> Check:
    """How exposed the tasks are: TensorFlow's servers have no access control, and listen on every address. Pure."""
    external = [address for address in addresses if not ipaddress.ip_address(address).is_loopback]
    public = [address for address in external if ipaddress.ip_address(address).is_global]
    if not external:
        return Check("network", OK, "this machine has only loopback addresses")
    more = f" and {len(external) - _SHOWN} more" if len(external) > _SHOWN else ""
    shown = ", ".join([*public, *(address for address in external if address not in public)][:_SHOWN])
    exposure = f"TensorFlow's servers have no access control and listen on {shown}{more}"
    where = "" if public else "On a network that you do not trust, put"
    return Check("network", WARN, exposure, f"{where or 'Put'} a firewall before the ports {_PORTS}.")


def _tensorflow() -> Check:
    if find_spec("tensorflow") is None:
        return Check("tensorflow", FAIL, "is not installed", install_advice("local"))
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
    return "installed, version unknown"
