"""The rules of `policy.rules` as a policy pack: a policy for each rule, over what belongs to a cluster and to nothing else.

What a user allows explicitly is in the pack's configuration, under the name of the rule and of the option.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from pulumi_policy import EnforcementLevel, PolicyConfigSchema, PolicyPack, ResourceValidationPolicy
from pulumi_policy.proxy import UnknownValueError

from tfdeploy.cluster import TYPE

sys.path.insert(0, str(Path(__file__).parents[1]))  # Pulumi runs this folder, not the repository that it is in.

from policy.rules import RULES, UNKNOWN, Rule, RuleOptions, check


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


def rule_options(configured: Mapping[str, Any]) -> RuleOptions:
    """The options in the configuration of one policy."""
    words = {field.name for field in fields(RuleOptions)} & {*configured}
    values: dict[str, Any] = {word: configured[word] for word in words}
    if "disks" in values:
        values["disks"] = tuple(values["disks"])
    return RuleOptions(**values)


def policy(rule: Rule) -> ResourceValidationPolicy:
    """One rule as a policy."""

    def validate(args: Any, report: Any) -> None:
        if f"{TYPE}$" in args.urn:
            for finding in check(args.resource_type, plain(args.props), rule_options(args.get_config()), [rule]):
                report(finding.why)

    return ResourceValidationPolicy(
        name=rule.name,
        description=f"{rule.statement} ({', '.join(rule.ids)})" if rule.ids else rule.statement,
        validate=validate,
        config_schema=_schema(rule) if rule.option else None,
    )


def _schema(rule: Rule) -> PolicyConfigSchema:
    default = getattr(RuleOptions(), rule.option)
    kind: dict[str, Any] = {"type": "boolean", "default": default}
    if isinstance(default, tuple):
        kind = {"type": "array", "items": {"type": "string"}, "default": list(default)}
    return PolicyConfigSchema(properties={rule.option: kind})


PolicyPack(
    name="tfdeploy",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=[policy(rule) for rule in RULES],
)
