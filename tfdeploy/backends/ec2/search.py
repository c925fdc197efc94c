"""The clusters of a region, found by their tags."""

from collections.abc import Sequence

from ...ec2 import account, prices, tagged
from ...ec2.tagged import Thing
from ..base import Cluster, Found
from . import reach


def found(place: str = "") -> list[Found]:
    """All that carries our tags in the region of a cluster's home, or of that name, by cluster.

    Raises:
        SpecError: nobody is logged in, or no region is known.
        Unreachable: AWS does not answer.
    """
    region = place.removeprefix(f"{reach.SCHEME}://").partition("/")[0] or account.default_region()
    return grouped(region, tagged.things(region))


def grouped(region: str, things: Sequence[Thing]) -> list[Found]:
    """Things become clusters; what is kept on purpose is no part of one. Pure."""
    by_cluster: dict[tuple[str, str, str], list[Thing]] = {}
    for thing in things:
        if not thing.kept:
            by_cluster.setdefault((thing.project, thing.stack, thing.cluster), []).append(thing)
    return [_found(region, key, own) for key, own in sorted(by_cluster.items())]


def _found(region: str, key: tuple[str, str, str], things: Sequence[Thing]) -> Found:
    project, stack, name = key
    home = reach.home(region, project, stack, name)
    cluster: Cluster = {"backend": "ec2", "project": project, "stack": stack, "name": name, "home": home}
    kinds = [thing.kind for thing in things]
    has = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    cost = prices.total(thing.cost for thing in things)
    return Found(cluster, has, min((thing.made for thing in things if thing.made), default=0.0), cost.known)
