"""Writes docs/safety.md from the rules: `python -m tools.safety`."""

import sys
from collections.abc import Iterable
from pathlib import Path

from policy.rules import LEFT, RULES
from tools.wrap import wrapped

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "safety.md"

HEAD = """\
# Security rules

Made from `policy/rules` by `python -m tools.safety`; a test compares.

All resources of a cluster on EC2 meet the rules below. The tests run them on every resource that the component
registers, and weaken each default to see that its rule reports it.
The ids are those of rules that require the same, in August 2026, in
[cdk-nag](https://github.com/cdklabs/cdk-nag/blob/main/RULES.md) (`AwsSolutions-…`; without a pack's name, in its packs
HIPAA.Security, NIST.800.53 and PCI.DSS), [checkov](https://github.com/bridgecrewio/checkov) (`CKV…`) or
[trivy](https://github.com/aquasecurity/trivy-checks) (`AWS-…`). Those tools do not read Pulumi programs.
`policy/rules` also lists the types of resources that no rule checks, and why.
"""

LEFT_HEAD = """\
## Left to the user

What these catalogues also require, and a cluster does not do by itself.
"""

PACK = """\
## As a policy pack

`policy/` has the same rules as a [Pulumi policy pack](https://www.pulumi.com/docs/insights/policy/): one policy for
each, mandatory, for the resources of clusters and no others of the stack. It needs no Pulumi account:

```
(cd policy && python -m venv venv && venv/bin/pip install -r requirements.txt)
pulumi up --policy-pack policy
```

What your arguments allow explicitly must also be set in a file for `--policy-pack-config`:

```json
{
  "closed-to-the-world": {"anywhere": true},
  "disk-types": {"disks": ["gp3", "io2"]},
  "no-public-address": {"public": false},
  "no-managed-policies": {"session_manager": true}
}
```

- The pack has its own virtual environment: `pulumi-policy` 1.21 asks for protobuf below 6, and would downgrade the
  program's.
- The language host that `tools/setup` builds cannot run packs: it runs the project's program instead. The hosts of
  Pulumi's releases can. So the tests run the rules, and the pack with a replacement of `pulumi_policy`; no `pulumi up`
  has run it yet.
- In a preview many values are not known yet, and are accepted; `up` checks again before it creates a resource.
"""


def _items(items: Iterable[str]) -> str:
    return wrapped("".join(f"- {item}\n" for item in items))


def _named(ids: Iterable[str]) -> str:
    return f" ({', '.join(ids)})" if ids else ""


def safety() -> str:
    """The whole page."""
    rules = (f"`{rule.name}`: {rule.statement}{_named(rule.ids)}" for rule in RULES)
    left = (f"**{advice.what}**{_named(advice.ids)}: {advice.why}" for advice in LEFT)
    return "\n".join(
        [
            HEAD,
            f"## The rules\n\n{_items(rules)}",
            f"{LEFT_HEAD}\n{_items(left)}",
            PACK,
        ]
    )


if __name__ == "__main__":
    TARGET.write_text(safety())
    print(f"wrote {TARGET.relative_to(ROOT)}", file=sys.stderr)
