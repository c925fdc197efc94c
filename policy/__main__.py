"""The rules of `tfdeploy.ec2.rules` as a policy pack: a policy for each rule, over what belongs to a cluster and to nothing else.

What a user asks for by word is said in the pack's configuration, under the rule's name and the word's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from pulumi_policy import EnforcementLevel, PolicyConfigSchema, PolicyPack, ResourceValidationPolicy
from pulumi_policy.proxy import UnknownValueError

from tfdeploy.cluster import TYPE
from tfdeploy.ec2.rules import RULES, UNKNOWN, Asked, Rule, check


def plain(value: Any) -> Any:
    """A copy as rules read it: what Pulumi raises an error for is unknown."""
    if isinstance(value, Mapping):
        return {key: _item(value, key) for key in value}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_item(value, number) for number in range(len(value))]
    return value


def _item(holder: Any, key: Any) -> Any:
    try:
        return plain(holder[key])
    except UnknownValueError:
        return UNKNOWN


def asked(configured: Mapping[str, Any]) -> Asked:
    """What the configuration of one policy says."""
    words = {field.name for field in fields(Asked)} & {*configured}
    found: dict[str, Any] = {word: configured[word] for word in words}
    if "disks" in found:
        found["disks"] = tuple(found["disks"])
    return Asked(**found)


def policy(rule: Rule) -> ResourceValidationPolicy:
    """One rule as a policy."""

    def validate(args: Any, report: Any) -> None:
        if f"{TYPE}$" in args.urn:
            for finding in check(args.resource_type, plain(args.props), asked(args.get_config()), [rule]):
                report(finding.why)

    return ResourceValidationPolicy(
        name=rule.name,
        description=f"{rule.says} ({', '.join(rule.answers)})" if rule.answers else rule.says,
        validate=validate,
        config_schema=_schema(rule) if rule.word else None,
    )


def _schema(rule: Rule) -> PolicyConfigSchema:
    default = getattr(Asked(), rule.word)
    kind: dict[str, Any] = {"type": "boolean", "default": default}
    if isinstance(default, tuple):
        kind = {"type": "array", "items": {"type": "string"}, "default": list(default)}
    return PolicyConfigSchema(properties={rule.word: kind})


PolicyPack(
    name="tfdeploy",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=[policy(rule) for rule in RULES],
)
