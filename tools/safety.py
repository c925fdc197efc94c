"""Writes docs/safety.md from the rules: `python -m tools.safety`."""

import sys
from collections.abc import Iterable
from pathlib import Path

from tfdeploy.ec2.rules import LEFT, OF_NO_INTEREST, RULES

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "safety.md"

HEAD = """\
# Safe by rule

Made from `tfdeploy/ec2/rules` by `python -m tools.safety`; a test compares.

What a cluster on EC2 registers with Pulumi keeps to the rules below. They are plain functions over a resource's type and inputs;
the tests run them over everything that the component registers, and weaken each default to see its rule find it. An id is that of a
rule that asks for the same, in August 2026, in [cdk-nag](https://github.com/cdklabs/cdk-nag/blob/main/RULES.md) (`AwsSolutions-…`;
without a pack's name, in its packs HIPAA.Security, NIST.800.53 and PCI.DSS), [checkov](https://github.com/bridgecrewio/checkov)
(`CKV…`) or [trivy](https://github.com/aquasecurity/trivy-checks) (`AWS-…`). Those programs read no Pulumi programs themselves.
"""

LEFT_HEAD = """\
## Left to the user

What these catalogues also ask for, and a cluster does not do by itself.
"""

PASSED_HEAD = """\
## Not looked at

Types of resources that a cluster registers, and at which no rule looks.
"""

PACK = """\
## As a policy pack

`policy/` has the same rules as a [Pulumi policy pack](https://www.pulumi.com/docs/insights/policy/): one policy for each, mandatory,
over what belongs to a cluster and over nothing else of the stack. It needs no account of Pulumi's:

```
(cd policy && python -m venv venv && venv/bin/pip install -r requirements.txt)
pulumi up --policy-pack policy
```

What is asked for by word is said again to the pack, in a file that `--policy-pack-config` names:

```json
{
  "closed-to-the-world": {"anywhere": true},
  "disk-types": {"disks": ["gp3", "io2"]},
  "no-public-address": {"public": false},
  "no-managed-policies": {"session_manager": true}
}
```

- The pack has an environment of its own: `pulumi-policy` 1.21 asks for protobuf below 6, and would downgrade that of the program.
- The language host that `tools/setup` builds (`tools/pulumi/language-host`, of Pulumi's SDK 3.75) cannot run packs: it runs the
  project's program in the pack's place. So the tests here run the rules, and the pack with a stand-in for `pulumi_policy`. With the
  real one the pack has answered over Pulumi's protocol; no `pulumi up` has run it yet. The hosts of Pulumi's own releases know packs.
- At a preview much is not known yet, and is passed over; `up` looks again before it makes a resource.
"""


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _ids(found: Iterable[str]) -> str:
    return ", ".join(found) or "none: the house's own"


def safety() -> str:
    """The whole page."""
    rules = ((f"`{rule.name}`", rule.says, _ids(rule.answers)) for rule in RULES)
    left = ((one.what, _ids(one.ids), one.why) for one in LEFT)
    passed = ((f"`{kind}`", why) for kind, why in OF_NO_INTEREST.items())
    return "\n".join(
        [
            HEAD,
            f"## The rules\n\n{_table(('rule', 'what holds', 'answers to'), rules)}",
            f"{LEFT_HEAD}\n{_table(('what', 'ids', 'why'), left)}",
            f"{PASSED_HEAD}\n{_table(('type', 'why'), passed)}",
            PACK,
        ]
    )


if __name__ == "__main__":
    TARGET.write_text(safety())
    print(f"wrote {TARGET.relative_to(ROOT)}", file=sys.stderr)
