"""What makes a cluster on EC2 safe, as rules over what Pulumi is asked for: a resource's type and inputs in, findings out. Pure.

What is not known yet is passed over; what is not given counts as what AWS makes of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from . import machines, network, rights
from .base import UNKNOWN, Asked, Inputs, Rule
from .left import LEFT, OF_NO_INTEREST

__all__ = ["LEFT", "OF_NO_INTEREST", "RULES", "UNKNOWN", "Asked", "Finding", "Rule", "check"]

RULES = (*machines.RULES, *network.RULES, *rights.RULES)


@dataclass(frozen=True)
class Finding:
    """One rule that one resource breaks."""

    rule: str
    why: str
    answers: tuple[str, ...]
    """The rules of cdk-nag, checkov and trivy that would find it too."""


def check(kind: str, inputs: Inputs, asked: Asked, rules: Sequence[Rule] = RULES) -> list[Finding]:
    """What the rules find in one resource of this type."""
    return [
        Finding(rule.name, why, rule.answers)
        for rule in rules
        if kind in rule.types
        for why in rule.wrongs(inputs, asked)
    ]
