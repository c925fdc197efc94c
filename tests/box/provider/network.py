"""VPCs, subnets, internet gateways, route tables."""

from collections.abc import Callable
from typing import Any

from tests.box.provider.ec2 import retag, specified
from tests.box.provider.kinds import Aws, Kind, Refused, Update, appeared, found, picked, tags_of, told, until
from tests.box.provider.retries import DELETION, in_use, retried
from tests.box.provider.values import Props

_ROUTE = {"GatewayId": "gatewayId", "NatGatewayId": "natGatewayId", "NetworkInterfaceId": "networkInterfaceId"}
"""The targets of a route that the stand-in carries out."""


def _first(aws: Aws, state: Props, call: str, what: str, **by: Any) -> dict[str, Any] | None:
    answer = found(lambda: getattr(aws.client("ec2", state), call)(**by))
    listed: list[dict[str, Any]] = (answer or {}).get(what, [])
    return listed[0] if listed else None


def _of_vpc(key: str) -> dict[str, Any]:
    return {"Filters": [{"Name": "vpc-id", "Values": [key]}]}


def _arn(aws: Aws, state: Props, what: str, key: str) -> str:
    return f"arn:aws:ec2:{aws.region(state)}:{aws.account}:{what}/{key}"


def _drop(call: str, name: str, read: Callable[[Aws, str, Props], Props | None]) -> Callable[[Aws, str, Props], None]:
    """Delete it as soon as nothing depends on it any more, and wait until it is gone."""

    def drop(aws: Aws, key: str, state: Props) -> None:
        ec2 = aws.client("ec2", state)
        retried(lambda: found(lambda: getattr(ec2, call)(**{name: key})), in_use, DELETION)
        until(lambda: read(aws, key, state) is None, f"{key} to be deleted")

    return drop


def _attribute(call: str, name: str, theirs: str, ours: str) -> Update:
    """An attribute that has a call of its own."""

    def change(aws: Aws, key: str, old: Props, new: Props) -> None:
        getattr(aws.client("ec2", new), call)(**{name: key, theirs: {"Value": new[ours]}})

    return change


_DNS = {
    "enableDnsSupport": _attribute("modify_vpc_attribute", "VpcId", "EnableDnsSupport", "enableDnsSupport"),
    "enableDnsHostnames": _attribute("modify_vpc_attribute", "VpcId", "EnableDnsHostnames", "enableDnsHostnames"),
}


def _make_vpc(aws: Aws, props: Props) -> str:
    if "cidrBlock" not in props:
        raise Refused("the stand-in has no address pools: give cidrBlock")
    answer = aws.client("ec2", props).create_vpc(
        CidrBlock=props["cidrBlock"],
        TagSpecifications=specified("vpc", props.get("tags")),
    )
    key = str(answer["Vpc"]["VpcId"])
    appeared(lambda: _read_vpc(aws, key, props), key)
    for name, change in _DNS.items():
        if name in props:
            change(aws, key, {}, props)
    return key


def _read_vpc(aws: Aws, key: str, state: Props) -> Props | None:
    vpc = _first(aws, state, "describe_vpcs", "Vpcs", VpcIds=[key])
    if vpc is None:
        return None
    ec2 = aws.client("ec2", state)
    dns = {
        name: ec2.describe_vpc_attribute(VpcId=key, Attribute=name)[f"{name[0].upper()}{name[1:]}"]["Value"]
        for name in _DNS
    }
    tables = ec2.describe_route_tables(**_of_vpc(key))["RouteTables"]
    main = [one["RouteTableId"] for one in tables if any(each.get("Main") for each in one["Associations"])]
    groups = ec2.describe_security_groups(**_of_vpc(key))["SecurityGroups"]
    default = [one["GroupId"] for one in groups if one["GroupName"] == "default"]
    return told(
        arn=_arn(aws, state, "vpc", key),
        cidrBlock=vpc["CidrBlock"],
        instanceTenancy=vpc["InstanceTenancy"],
        ownerId=aws.account,
        dhcpOptionsId=vpc.get("DhcpOptionsId"),
        mainRouteTableId=next(iter(main), None),
        defaultRouteTableId=next(iter(main), None),
        defaultSecurityGroupId=next(iter(default), None),
        **dns,
        **tags_of(vpc.get("Tags")),
    )


_ON_LAUNCH = _attribute("modify_subnet_attribute", "SubnetId", "MapPublicIpOnLaunch", "mapPublicIpOnLaunch")


def _make_subnet(aws: Aws, props: Props) -> str:
    answer = aws.client("ec2", props).create_subnet(
        **picked(
            props,
            VpcId="vpcId",
            CidrBlock="cidrBlock",
            AvailabilityZone="availabilityZone",
            AvailabilityZoneId="availabilityZoneId",
        ),
        TagSpecifications=specified("subnet", props.get("tags")),
    )
    key = str(answer["Subnet"]["SubnetId"])
    appeared(lambda: _read_subnet(aws, key, props), key)
    if props["mapPublicIpOnLaunch"]:
        _ON_LAUNCH(aws, key, {}, props)
    return key


def _read_subnet(aws: Aws, key: str, state: Props) -> Props | None:
    subnet = _first(aws, state, "describe_subnets", "Subnets", SubnetIds=[key])
    if subnet is None:
        return None
    return told(
        arn=_arn(aws, state, "subnet", key),
        vpcId=subnet["VpcId"],
        cidrBlock=subnet["CidrBlock"],
        availabilityZone=subnet["AvailabilityZone"],
        availabilityZoneId=subnet.get("AvailabilityZoneId"),
        mapPublicIpOnLaunch=subnet["MapPublicIpOnLaunch"],
        ownerId=subnet.get("OwnerId"),
        **tags_of(subnet.get("Tags")),
    )


def _make_gateway(aws: Aws, props: Props) -> str:
    answer = aws.client("ec2", props).create_internet_gateway(
        TagSpecifications=specified("internet-gateway", props.get("tags"))
    )
    key = str(answer["InternetGateway"]["InternetGatewayId"])
    appeared(lambda: _read_gateway(aws, key, props), key)
    _move_gateway(aws, key, {}, props)
    return key


def _read_gateway(aws: Aws, key: str, state: Props) -> Props | None:
    gateway = _first(aws, state, "describe_internet_gateways", "InternetGateways", InternetGatewayIds=[key])
    if gateway is None:
        return None
    return told(
        arn=_arn(aws, state, "internet-gateway", key),
        ownerId=gateway.get("OwnerId"),
        vpcId=next((one["VpcId"] for one in gateway["Attachments"]), ""),
        **tags_of(gateway.get("Tags")),
    )


def _move_gateway(aws: Aws, key: str, old: Props, new: Props) -> None:
    ec2 = aws.client("ec2", new)
    if old.get("vpcId"):
        ec2.detach_internet_gateway(InternetGatewayId=key, VpcId=old["vpcId"])
    if new.get("vpcId"):
        ec2.attach_internet_gateway(InternetGatewayId=key, VpcId=new["vpcId"])


def _drop_gateway(aws: Aws, key: str, state: Props) -> None:
    if state.get("vpcId"):
        retried(lambda: found(lambda: _move_gateway(aws, key, state, {**state, "vpcId": ""})), in_use, DELETION)
    _drop("delete_internet_gateway", "InternetGatewayId", _read_gateway)(aws, key, state)


def _make_table(aws: Aws, props: Props) -> str:
    answer = aws.client("ec2", props).create_route_table(
        VpcId=props["vpcId"], TagSpecifications=specified("route-table", props.get("tags"))
    )
    key = str(answer["RouteTable"]["RouteTableId"])
    appeared(lambda: _read_table(aws, key, props), key)
    _set_routes(aws, key, {}, props)
    return key


def _read_table(aws: Aws, key: str, state: Props) -> Props | None:
    table = _first(aws, state, "describe_route_tables", "RouteTables", RouteTableIds=[key])
    if table is None:
        return None
    routes = [
        {
            "cidrBlock": route["DestinationCidrBlock"],
            **told(**{ours: route.get(theirs) for theirs, ours in _ROUTE.items()}),
        }
        for route in table["Routes"]
        if route.get("GatewayId") != "local" and "DestinationCidrBlock" in route
    ]
    return told(
        arn=_arn(aws, state, "route-table", key),
        vpcId=table["VpcId"],
        ownerId=table.get("OwnerId"),
        routes=routes,
        **tags_of(table.get("Tags")),
    )


def _set_routes(aws: Aws, key: str, old: Props, new: Props) -> None:
    ec2 = aws.client("ec2", new)
    before = {route["cidrBlock"]: route for route in old.get("routes", [])}
    wanted = {_destination(route): route for route in new.get("routes", [])}
    for block, route in wanted.items():
        target = picked(route, **_ROUTE)
        if block not in before:
            ec2.create_route(RouteTableId=key, DestinationCidrBlock=block, **target)
        elif picked(before[block], **_ROUTE) != target:
            ec2.replace_route(RouteTableId=key, DestinationCidrBlock=block, **target)
    for block in set(before) - set(wanted):
        ec2.delete_route(RouteTableId=key, DestinationCidrBlock=block)


def _destination(route: Props) -> str:
    if unknown := set(route) - {"cidrBlock", *_ROUTE.values()}:
        raise Refused(f"the stand-in does not carry out {', '.join(sorted(unknown))} of a route")
    return str(route["cidrBlock"])


def _make_association(aws: Aws, props: Props) -> str:
    ec2 = aws.client("ec2", props)
    answer = ec2.associate_route_table(
        **picked(props, RouteTableId="routeTableId", SubnetId="subnetId", GatewayId="gatewayId")
    )
    return str(answer["AssociationId"])


def _another_table(aws: Aws, key: str, old: Props, new: Props) -> None:
    # There the association gets another id.
    raise Refused("the stand-in does not carry out another routeTableId")


def _read_association(aws: Aws, key: str, state: Props) -> Props | None:
    by = {"Filters": [{"Name": "association.route-table-association-id", "Values": [key]}]}
    table = _first(aws, state, "describe_route_tables", "RouteTables", **by)
    listed = [one for one in (table or {}).get("Associations", []) if one["RouteTableAssociationId"] == key]
    if not listed:
        return None
    (one,) = listed
    return told(routeTableId=one["RouteTableId"], subnetId=one.get("SubnetId"), gatewayId=one.get("GatewayId"))


KINDS = (
    Kind(
        token="aws:ec2/vpc:Vpc",
        create=_make_vpc,
        read=_read_vpc,
        delete=_drop("delete_vpc", "VpcId", _read_vpc),
        replaces=frozenset({"cidrBlock", "region"}),
        updates={**_DNS, "tags": retag},
        defaults={"enableDnsSupport": True},
    ),
    Kind(
        token="aws:ec2/subnet:Subnet",
        create=_make_subnet,
        read=_read_subnet,
        delete=_drop("delete_subnet", "SubnetId", _read_subnet),
        replaces=frozenset({"availabilityZone", "availabilityZoneId", "cidrBlock", "vpcId", "region"}),
        updates={"mapPublicIpOnLaunch": _ON_LAUNCH, "tags": retag},
        defaults={"mapPublicIpOnLaunch": False},
    ),
    Kind(
        token="aws:ec2/internetGateway:InternetGateway",
        create=_make_gateway,
        read=_read_gateway,
        delete=_drop_gateway,
        replaces=frozenset({"region"}),
        updates={"vpcId": _move_gateway, "tags": retag},
    ),
    Kind(
        token="aws:ec2/routeTable:RouteTable",
        create=_make_table,
        read=_read_table,
        delete=_drop("delete_route_table", "RouteTableId", _read_table),
        replaces=frozenset({"vpcId", "region"}),
        updates={"routes": _set_routes, "tags": retag},
    ),
    Kind(
        token="aws:ec2/routeTableAssociation:RouteTableAssociation",
        create=_make_association,
        read=_read_association,
        delete=lambda aws, key, state: aws.client("ec2", state).disassociate_route_table(AssociationId=key),
        replaces=frozenset({"gatewayId", "subnetId", "region"}),
        updates={"routeTableId": _another_table},
        cleared=frozenset({"gatewayId", "subnetId"}),
    ),
)
