"""Key pairs, security groups and their rules."""

from typing import Any

from tests.box.provider.kinds import Aws, Kind, appeared, found, nothing, pairs, picked, stale, tags_of, told, until
from tests.box.provider.retries import DELETION, in_use, retried
from tests.box.provider.values import Props


def retag(aws: Aws, key: str, old: Props, new: Props) -> None:
    """Tags as they are wanted now."""
    ec2 = aws.client("ec2", new)
    if gone := stale(old, new):
        ec2.delete_tags(Resources=[key], Tags=[{"Key": name} for name in gone])
    if new.get("tags"):
        ec2.create_tags(Resources=[key], Tags=pairs(new["tags"]))


def specified(what: str, tags: dict[str, str] | None) -> list[dict[str, Any]]:
    """Tags for something that is being made."""
    return [{"ResourceType": what, "Tags": pairs(tags)}] if tags else []


def _make_key_pair(aws: Aws, props: Props) -> str:
    answer = aws.client("ec2", props).import_key_pair(
        KeyName=props["keyName"],
        PublicKeyMaterial=props["publicKey"].encode(),
        TagSpecifications=specified("key-pair", props.get("tags")),
    )
    return str(answer["KeyName"])


def _read_key_pair(aws: Aws, key: str, state: Props) -> Props | None:
    answer = found(lambda: aws.client("ec2", state).describe_key_pairs(KeyNames=[key]))
    if not answer or not answer["KeyPairs"]:
        return None
    pair = answer["KeyPairs"][0]
    return told(keyName=pair["KeyName"], keyPairId=pair["KeyPairId"], **tags_of(pair.get("Tags")))


def _retag_key_pair(aws: Aws, key: str, old: Props, new: Props) -> None:
    retag(aws, old["keyPairId"], old, new)


def _make_group(aws: Aws, props: Props) -> str:
    ec2 = aws.client("ec2", props)
    answer = ec2.create_security_group(
        GroupName=props["name"],
        Description=props["description"],
        **picked(props, VpcId="vpcId"),
        TagSpecifications=specified("security-group", props.get("tags")),
    )
    group = str(answer["GroupId"])
    appeared(lambda: _read_group(aws, group, props), group)
    opened = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissionsEgress"]
    if opened:
        ec2.revoke_security_group_egress(GroupId=group, IpPermissions=opened)
    return group


def _read_group(aws: Aws, key: str, state: Props) -> Props | None:
    answer = found(lambda: aws.client("ec2", state).describe_security_groups(GroupIds=[key]))
    if not answer or not answer["SecurityGroups"]:
        return None
    group = answer["SecurityGroups"][0]
    return told(
        name=group["GroupName"],
        description=group["Description"],
        vpcId=group.get("VpcId"),
        arn=f"arn:aws:ec2:{aws.region(state)}:{group['OwnerId']}:security-group/{key}",
        **tags_of(group.get("Tags")),
    )


def _drop_group(aws: Aws, key: str, state: Props) -> None:
    ec2 = aws.client("ec2", state)
    retried(lambda: found(lambda: ec2.delete_security_group(GroupId=key)), in_use, DELETION)
    until(lambda: _read_group(aws, key, state) is None, f"{key} to be deleted")


def _permission(props: Props) -> dict[str, Any]:
    wanted: dict[str, Any] = {"IpProtocol": props["ipProtocol"], **picked(props, FromPort="fromPort", ToPort="toPort")}
    note = picked(props, Description="description")
    sources = {
        "IpRanges": picked(props, CidrIp="cidrIpv4"),
        "Ipv6Ranges": picked(props, CidrIpv6="cidrIpv6"),
        "UserIdGroupPairs": picked(props, GroupId="referencedSecurityGroupId"),
    }
    return wanted | {name: [{**source, **note}] for name, source in sources.items() if source}


def _rule(way: str) -> Kind:
    """Rules of one direction: `ingress` or `egress`."""

    def make(aws: Aws, props: Props) -> str:
        answer = getattr(aws.client("ec2", props), f"authorize_security_group_{way}")(
            GroupId=props["securityGroupId"],
            IpPermissions=[_permission(props)],
            TagSpecifications=specified("security-group-rule", props.get("tags")),
        )
        return str(answer["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    def change(aws: Aws, key: str, old: Props, new: Props) -> None:
        rule = {"IpProtocol": new["ipProtocol"]} | picked(
            new,
            FromPort="fromPort",
            ToPort="toPort",
            CidrIpv4="cidrIpv4",
            CidrIpv6="cidrIpv6",
            ReferencedGroupId="referencedSecurityGroupId",
            Description="description",
        )
        aws.client("ec2", new).modify_security_group_rules(
            GroupId=new["securityGroupId"], SecurityGroupRules=[{"SecurityGroupRuleId": key, "SecurityGroupRule": rule}]
        )

    def drop(aws: Aws, key: str, state: Props) -> None:
        getattr(aws.client("ec2", state), f"revoke_security_group_{way}")(
            GroupId=state["securityGroupId"], SecurityGroupRuleIds=[key]
        )

    sources = ("cidrIpv4", "cidrIpv6", "referencedSecurityGroupId")
    parts = (*sources, "fromPort", "toPort", "description")
    return Kind(
        token=f"aws:vpc/securityGroup{way.title()}Rule:SecurityGroup{way.title()}Rule",
        create=make,
        read=_read_rule,
        delete=drop,
        replaces=frozenset({"securityGroupId", "region"}),
        updates={**dict.fromkeys((*parts, "ipProtocol"), change), "tags": retag},
        cleared=frozenset(parts),
        either=frozenset(sources),
    )


def _read_rule(aws: Aws, key: str, state: Props) -> Props | None:
    answer = found(lambda: aws.client("ec2", state).describe_security_group_rules(SecurityGroupRuleIds=[key]))
    if not answer or not answer["SecurityGroupRules"]:
        return None
    rule = answer["SecurityGroupRules"][0]
    ports = {ours: rule.get(theirs) for ours, theirs in (("fromPort", "FromPort"), ("toPort", "ToPort"))}
    return told(
        securityGroupRuleId=key,
        securityGroupId=rule["GroupId"],
        ipProtocol=rule["IpProtocol"],
        cidrIpv4=rule.get("CidrIpv4"),
        cidrIpv6=rule.get("CidrIpv6"),
        referencedSecurityGroupId=rule.get("ReferencedGroupInfo", {}).get("GroupId"),
        description=rule.get("Description") or None,
        **{name: port for name, port in ports.items() if port is not None and port != -1},
        **tags_of(rule.get("Tags")),
    )


KINDS = (
    Kind(
        token="aws:ec2/keyPair:KeyPair",
        create=_make_key_pair,
        read=_read_key_pair,
        delete=lambda aws, key, state: aws.client("ec2", state).delete_key_pair(KeyName=key),
        replaces=frozenset({"keyName", "publicKey", "region"}),
        updates={"tags": _retag_key_pair},
        named="keyName",
    ),
    Kind(
        token="aws:ec2/securityGroup:SecurityGroup",
        create=_make_group,
        read=_read_group,
        delete=_drop_group,
        replaces=frozenset({"name", "description", "vpcId", "region"}),
        updates={"tags": retag, "revokeRulesOnDelete": nothing},
        defaults={"description": "Managed by Pulumi", "revokeRulesOnDelete": False},
        named="name",
    ),
    _rule("ingress"),
    _rule("egress"),
)
