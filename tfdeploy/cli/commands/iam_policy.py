"""`tfdeploy iam-policy`: the AWS permissions that a cluster on EC2 needs."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import yaml

from ... import registry
from ...backends.load import load
from ...errors import SpecError
from ...registry import Entry
from ...spec.backends import JOB_MAPPINGS
from ...spec.ec2 import CONNECTIVITIES, NEW, SSM
from ..common import print_json, print_message
from ..option import Option
from ..pulumi import places, project_name, settings
from ..select import ClusterQuery, current_stack

if TYPE_CHECKING:
    from ...backends.ec2.aws.iam_policy import PolicyRequest

_BACKEND = "ec2"
_ACCOUNT = re.compile(r"\d{12}")
_LONGEST = 6144
"""The most characters of a managed policy, without spaces.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""


def iam_policy(
    query: ClusterQuery,
    every: Annotated[
        bool, Option("--all", help="For all arguments that a cluster may have.", show_default=False)
    ] = False,
    account: Annotated[str, Option(help="Id of the account. Default: the user's.", show_default=False)] = "",
    region: Annotated[str, Option(help="Region. Default: the stack's, else every one.", show_default=False)] = "",
    efs: Annotated[str, Option(help='"new", or the id of a file system.', show_default=False)] = "",
    spot: Annotated[bool, Option("--spot", help="For spot instances.", show_default=False)] = False,
    connectivity: Annotated[str, Option(help=f"One of: {', '.join(CONNECTIVITIES)}.", show_default=False)] = "",
    instance_profile: Annotated[str, Option(help="Your own instance profile.", show_default=False)] = "",
    ebs_volume: Annotated[
        list[str] | None, Option(help="Id of an existing volume. Can be repeated.", show_default=False)
    ] = None,
) -> None:
    """Print the least IAM policy for a cluster on EC2, as JSON.

    It is for what the cluster and the configuration of the stack use, and for the options.
    With it a user can run `pulumi preview`, `up`, `refresh` and `destroy`, and all commands of `tfdeploy`.
    Other resources of the program, the image registry and Pulumi's backend need further permissions.
    """
    load(_BACKEND)
    from ...backends.ec2.aws.iam_policy import document, everything

    _refuse_values(account, connectivity)
    known_region, groups = _of_stack(query)
    options: dict[str, Any] = {"efs": efs, "spot": spot, "connectivity": connectivity}
    options |= {"instance_profile": instance_profile, "ebs_volumes": ebs_volume or []}
    request = _request(account, region or known_region, [*groups, options])
    if every:
        request = everything(account, request.region)
    policy = document(request)
    print_json(policy)
    if request.instance_profile:
        name = request.instance_profile
        print_message(f"It assumes that the role of the instance profile {name} is also called {name}.")
    if len(json.dumps(policy, separators=(",", ":"))) > _LONGEST:
        print_message(
            "It is longer than a managed policy may be. Use --region, or an inline policy of a role or a group."
        )


def _refuse_values(account: str, connectivity: str) -> None:
    if account and not _ACCOUNT.fullmatch(account):
        raise SpecError("--account", f"{account!r} is not the id of an account", "Use its 12 digits.")
    if connectivity and connectivity not in CONNECTIVITIES:
        wrong = f"{connectivity!r} is not a valid connectivity"
        raise SpecError("--connectivity", wrong, f"It takes one of: {', '.join(CONNECTIVITIES)}.")


def _of_stack(query: ClusterQuery) -> tuple[str, list[Mapping[str, Any]]]:
    """The region, and the groups `ec2` of the arguments, that the stack's configuration and its clusters use."""
    file, stack = current_stack(query)
    configuration = settings(file, stack)
    entries = _entries(query, file, stack)
    regions = [str(urlsplit(entry.cluster["home"]).hostname) for entry in entries]
    own = {key: value for key, value in configuration.items() if key.startswith("tfdeploy:")}
    groups = _groups({key.removeprefix("tfdeploy:"): value for key, value in own.items()})
    groups += [group for entry in entries for group in _groups(entry.options)]
    return next(iter(regions), places(configuration)[_BACKEND].rpartition("@")[2]), groups


def _entries(query: ClusterQuery, file: Path | None, stack: str) -> list[Entry]:
    """The clusters of the stack on EC2 that this computer knows, the latest update first."""
    if file is None:
        return []
    words = {"project": project_name(file), "stack": stack, "backend": _BACKEND}
    return [
        entry
        for entry in registry.entries()
        if words.items() <= entry.cluster.items() and not entry.ended and query.matches(entry.cluster)
    ]


def _groups(arguments: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """The groups `ec2` of arguments: the cluster's, and those of its jobs. The values are JSON, or YAML as Pulumi stores it."""
    groups: dict[str, Any] = {}
    for name, text in arguments.items():
        *path, last = name.split(".")
        group = groups
        for part in path:
            group = group.setdefault(part, {})
        value = _parsed(text)
        if isinstance(value, dict) and isinstance(group.get(last), dict):
            group[last].update(value)
        else:
            group[last] = value
    jobs = [groups[key] for key in JOB_MAPPINGS if isinstance(groups.get(key), dict)]
    owners = [groups, *(job for mapping in jobs for job in mapping.values())]
    members = [owner.get("ec2") for owner in owners if isinstance(owner, dict)]
    return [member for member in members if isinstance(member, dict)]


def _parsed(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _request(account: str, region: str, groups: Sequence[Mapping[str, Any]]) -> "PolicyRequest":
    """The request for the arguments of all groups; where only one value counts, the last group decides."""
    from ...backends.ec2.aws.iam_policy import PolicyRequest

    def texts(key: str) -> list[str]:
        return [value for group in groups if isinstance(value := group.get(key), str) and value]

    def last(key: str) -> str:
        return texts(key)[-1] if texts(key) else ""

    lists = (value for group in groups if isinstance(value := group.get("ebs_volumes"), list))
    volumes = {str(volume).partition(":")[0] for value in lists for volume in value}
    return PolicyRequest(
        account,
        region or next(iter(texts("region")), ""),
        new_files=NEW in texts("efs"),
        spot=any(group.get("spot") is True for group in groups),
        ssm=SSM in texts("connectivity"),
        instance_profile=last("instance_profile"),
        volumes=tuple(sorted(volume for volume in volumes if volume.startswith("vol-"))),
        placement_group=last("placement_group"),
        subnet_id=last("subnet_id"),
        vpc_id=last("vpc_id"),
        images=tuple(sorted({*texts("ami")})),
    )
