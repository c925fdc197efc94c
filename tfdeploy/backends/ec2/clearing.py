"""Everything of a cluster's taken out of AWS, and what this computer knows of its machines kept true."""

import re
from collections.abc import Iterable
from contextlib import suppress

from ...ec2 import account, removal, roles
from ...ec2.boot import HOST_KEY
from ...ec2.facts import Instance
from ...errors import Unreachable
from ...instances import PRIVATE, SSM
from ...spec import ClusterSpec
from ..base import Cluster
from . import failing, fleet, keys, reach

_SHOWN = re.compile(rf"{HOST_KEY}(ssh-ed25519 [A-Za-z0-9+/]{{68}})(\s|$)")
"""A whole key: the console may be read while the line is being written."""


def clear(cluster: Cluster, keep_volumes: bool) -> list[str]:
    """Remove all that carries the cluster's tags; the file systems that are kept.

    Raises:
        BackendError: something does not go away; it is named.
    """
    region = reach.region(cluster)
    kept = removal.remove_all(region, fleet.tags(cluster), keep_volumes)
    failing.forget_all(cluster)
    roles.remove(region, roles.path(cluster["project"], cluster["stack"], cluster["name"]))
    return kept


def meet(cluster: Cluster, spec: ClusterSpec, instances: Iterable[Instance]) -> None:
    """Know the machines that run, from whatever computer they were made; forget those that are gone."""
    running = [one for one in instances if one.state == "running"]
    before = reach.read(cluster)
    known = before.host_keys
    hosts = {
        one.machine: reach.Host(one.instance_id, _address(one), key)
        for one in running
        if (key := known.get(one.instance_id) or _told(cluster, one))
    }
    manager = next((one.machine for one in running if one.manages and one.machine in hosts), "")
    after = reach.Reach(manager, spec.fleet.ssh_user, keys.private(keys.found(spec)), hosts)
    if after != before and (hosts or before.hosts):
        reach.write(cluster, after)


def _address(one: Instance) -> str:
    """Where ssh finds it: as it was made to be reached, whatever is asked for now."""
    return {PRIVATE: one.private_ip, SSM: one.instance_id}.get(one.access, one.public_ip)


def _told(cluster: Cluster, one: Instance) -> str:
    with suppress(Unreachable):
        return host_key(account.console(reach.region(cluster), one.instance_id))
    return ""


def host_key(console: str) -> str:
    """The key that a machine has shown on its console, where only EC2 can have written it; empty for none yet."""
    found = _SHOWN.search(console)
    return found[1] if found else ""
