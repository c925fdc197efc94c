"""IAM: roles, their policies, instance profiles."""

import json
from typing import Any

from tests.box.provider.kinds import Aws, Kind, Update, appeared, found, nothing, pairs, picked, stale, tags_of, told
from tests.box.provider.values import Props


def _document(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _retag(what: str, name: str) -> Update:
    def update(aws: Aws, key: str, old: Props, new: Props) -> None:
        iam = aws.client("iam", new)
        if gone := stale(old, new):
            getattr(iam, f"untag_{what}")(**{name: key, "TagKeys": gone})
        if new.get("tags"):
            getattr(iam, f"tag_{what}")(**{name: key, "Tags": pairs(new["tags"])})

    return update


def _make_role(aws: Aws, props: Props) -> str:
    answer = aws.client("iam", props).create_role(
        RoleName=props["name"],
        AssumeRolePolicyDocument=_document(props["assumeRolePolicy"]),
        **picked(props, Path="path", Description="description"),
        Tags=pairs(props.get("tags", {})),
    )
    key = str(answer["Role"]["RoleName"])
    appeared(lambda: _read_role(aws, key, props), key)
    return key


def _read_role(aws: Aws, key: str, state: Props) -> Props | None:
    answer = found(lambda: aws.client("iam", state).get_role(RoleName=key))
    if answer is None:
        return None
    role = answer["Role"]
    return told(
        name=role["RoleName"],
        arn=role["Arn"],
        path=role["Path"],
        description=role.get("Description"),
        assumeRolePolicy=json.dumps(role["AssumeRolePolicyDocument"]),
        **tags_of(role.get("Tags")),
    )


def _trust(aws: Aws, key: str, old: Props, new: Props) -> None:
    document = _document(new["assumeRolePolicy"])
    aws.client("iam", new).update_assume_role_policy(RoleName=key, PolicyDocument=document)


def _describe_role(aws: Aws, key: str, old: Props, new: Props) -> None:
    aws.client("iam", new).update_role(RoleName=key, Description=new.get("description", ""))


def _drop_role(aws: Aws, key: str, state: Props) -> None:
    iam = aws.client("iam", state)
    for profile in iam.list_instance_profiles_for_role(RoleName=key)["InstanceProfiles"]:
        iam.remove_role_from_instance_profile(InstanceProfileName=profile["InstanceProfileName"], RoleName=key)
    if state.get("forceDetachPolicies"):
        for policy in iam.list_attached_role_policies(RoleName=key)["AttachedPolicies"]:
            iam.detach_role_policy(RoleName=key, PolicyArn=policy["PolicyArn"])
        for name in iam.list_role_policies(RoleName=key)["PolicyNames"]:
            iam.delete_role_policy(RoleName=key, PolicyName=name)
    iam.delete_role(RoleName=key)


def _put_policy(aws: Aws, props: Props) -> str:
    role, name = props["role"], props["name"]
    document = _document(props["policy"])
    aws.client("iam", props).put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=document)
    appeared(lambda: _read_policy(aws, f"{role}:{name}", props), name)
    return f"{role}:{name}"


def _change_policy(aws: Aws, key: str, old: Props, new: Props) -> None:
    _put_policy(aws, new)


def _read_policy(aws: Aws, key: str, state: Props) -> Props | None:
    role, _, name = key.partition(":")
    answer = found(lambda: aws.client("iam", state).get_role_policy(RoleName=role, PolicyName=name))
    return answer and {"role": role, "name": name, "policy": _document(answer["PolicyDocument"])}


def _drop_policy(aws: Aws, key: str, state: Props) -> None:
    role, _, name = key.partition(":")
    aws.client("iam", state).delete_role_policy(RoleName=role, PolicyName=name)


def _attach(aws: Aws, props: Props) -> str:
    role, policy = props["role"], props["policyArn"]
    aws.client("iam", props).attach_role_policy(RoleName=role, PolicyArn=policy)
    appeared(lambda: _read_attachment(aws, f"{role}/{policy}", props), policy)
    return f"{role}/{policy}"


def _detach(aws: Aws, key: str, state: Props) -> None:
    aws.client("iam", state).detach_role_policy(RoleName=state["role"], PolicyArn=state["policyArn"])


def _read_attachment(aws: Aws, key: str, state: Props) -> Props | None:
    role, _, policy = key.partition("/")
    answer = found(lambda: aws.client("iam", state).list_attached_role_policies(RoleName=role))
    held = [one["PolicyArn"] for one in (answer or {}).get("AttachedPolicies", [])]
    return {"role": role, "policyArn": policy} if policy in held else None


def _make_profile(aws: Aws, props: Props) -> str:
    iam = aws.client("iam", props)
    name = props["name"]
    tags = pairs(props.get("tags", {}))
    iam.create_instance_profile(InstanceProfileName=name, **picked(props, Path="path"), Tags=tags)
    appeared(lambda: _read_profile(aws, name, props), name)
    if "role" in props:
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=props["role"])
    return str(name)


def _read_profile(aws: Aws, key: str, state: Props) -> Props | None:
    answer = found(lambda: aws.client("iam", state).get_instance_profile(InstanceProfileName=key))
    if answer is None:
        return None
    profile = answer["InstanceProfile"]
    roles = [role["RoleName"] for role in profile["Roles"]]
    return told(
        name=profile["InstanceProfileName"],
        arn=profile["Arn"],
        path=profile["Path"],
        role=roles[0] if roles else "",
        **tags_of(profile.get("Tags")),
    )


def _set_role(aws: Aws, key: str, old: Props, new: Props) -> None:
    iam = aws.client("iam", new)
    if old.get("role"):
        iam.remove_role_from_instance_profile(InstanceProfileName=key, RoleName=old["role"])
    if new.get("role"):
        iam.add_role_to_instance_profile(InstanceProfileName=key, RoleName=new["role"])


def _drop_profile(aws: Aws, key: str, state: Props) -> None:
    now = _read_profile(aws, key, state)
    if now is not None:
        _set_role(aws, key, now, {})
        aws.client("iam", state).delete_instance_profile(InstanceProfileName=key)


KINDS = (
    Kind(
        token="aws:iam/role:Role",
        create=_make_role,
        read=_read_role,
        delete=_drop_role,
        replaces=frozenset({"name", "path"}),
        updates={
            "assumeRolePolicy": _trust,
            "description": _describe_role,
            "forceDetachPolicies": nothing,
            "tags": _retag("role", "RoleName"),
        },
        cleared=frozenset({"description"}),
        defaults={"forceDetachPolicies": False, "path": "/"},
        named="name",
    ),
    Kind(
        token="aws:iam/rolePolicy:RolePolicy",
        create=_put_policy,
        read=_read_policy,
        delete=_drop_policy,
        replaces=frozenset({"role", "name"}),
        updates={"policy": _change_policy},
        named="name",
    ),
    Kind(
        token="aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        create=_attach,
        read=_read_attachment,
        delete=_detach,
        replaces=frozenset({"role", "policyArn"}),
    ),
    Kind(
        token="aws:iam/instanceProfile:InstanceProfile",
        create=_make_profile,
        read=_read_profile,
        delete=_drop_profile,
        replaces=frozenset({"name", "path"}),
        updates={"role": _set_role, "tags": _retag("instance_profile", "InstanceProfileName")},
        cleared=frozenset({"role"}),
        defaults={"path": "/"},
        named="name",
    ),
)
