"""Security rules for clusters on EC2: a resource's type and inputs in, findings out. Pure.

Unknown values are accepted; a missing value counts as AWS's default.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from . import iam, instances, network
from .base import UNKNOWN, Inputs, Rule, RuleOptions
from .exceptions import LEFT, OF_NO_INTEREST

__all__ = ["LEFT", "OF_NO_INTEREST", "RULES", "UNKNOWN", "Finding", "Rule", "RuleOptions", "check"]

RULES = (*instances.RULES, *network.RULES, *iam.RULES)


@dataclass(frozen=True)
class Finding:
    """One rule that one resource breaks."""

    rule: str
    why: str
    ids: tuple[str, ...]
    """The rules of cdk-nag, checkov and trivy that would find it too."""


def check(kind: str, inputs: Inputs, options: RuleOptions, rules: Sequence[Rule] = RULES) -> list[Finding]:
    """What the rules find in one resource of this type."""
    return [
        Finding(rule.name, why, rule.ids)
        for rule in rules
        if kind in rule.types
        for why in rule.wrongs(inputs, options)
    ]
