"""The ssh host keys of machines, which each machine prints on its console: only EC2 can report that console."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from ....errors import Unreachable
from ....spec.cluster import ClusterSpec
from ....spec.ec2 import PRIVATE, SSM
from ...base import ClusterRef
from ...parallel_calls import for_all
from ..aws import api
from . import ssh
from .model import Instance
from .user_data import HOST_KEY

_KEY = re.compile(rf"{HOST_KEY}(ssh-ed25519 [A-Za-z0-9+/]{{68}})(\s|$)")
"""A whole key: the console may be read while the line is being printed."""

_READERS = 10
"""How many consoles are read at the same time."""


def host_key(console: str) -> str:
    """The host key in the output of a console; empty before the machine has printed it."""
    match = _KEY.search(console)
    return match[1] if match else ""


def discover(cluster: ClusterRef, spec: ClusterSpec, instances: Iterable[Instance]) -> ssh.SshHosts:
    """How ssh reaches the machines that run, whichever computer created them. Stores nothing."""
    running = [instance for instance in instances if instance.state == "running"]
    keys = dict(ssh.read(cluster).host_keys)
    keys.update(_printed_keys(cluster, [instance for instance in running if instance.instance_id not in keys]))
    hosts = {
        instance.machine: ssh.Host(instance.instance_id, _address(instance), key)
        for instance in running
        if (key := keys[instance.instance_id])
    }
    if not hosts:
        return ssh.SshHosts()
    managers = (instance.machine for instance in running if instance.is_manager and instance.machine in hosts)
    return ssh.SshHosts(next(managers, ""), spec.ec2.ssh_user, hosts)


def _address(instance: Instance) -> str:
    """The host name for ssh, by the access with which the instance was created."""
    return {PRIVATE: instance.private_ip, SSM: instance.instance_id}.get(instance.access, instance.public_ip)


def _printed_keys(cluster: ClusterRef, instances: Sequence[Instance]) -> dict[str, str]:
    """Instance id to host key, read from several consoles at the same time."""
    keys = for_all(instances, lambda instance: _printed_key(cluster, instance), _READERS)
    return {instance.instance_id: key for instance, key in zip(instances, keys, strict=True)}


def _printed_key(cluster: ClusterRef, instance: Instance) -> str:
    with suppress(Unreachable):
        return host_key(api.retry_throttled(lambda: api.console(ssh.region(cluster), instance.instance_id)))
    return ""
