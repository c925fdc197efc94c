"""Names in ARNs, and paths of IAM."""

SSM_POLICY = "policy/AmazonSSMManagedInstanceCore"
"""The policy that the roles of machines have with `connectivity="ssm"`: the permissions of SSM's agent.
https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonSSMManagedInstanceCore.html"""

ROLES_PATH = "/tfdeploy/"
"""The beginning of the IAM path of all roles."""


def partition(region: str) -> str:
    """The partition of AWS that has a region, as in ARNs.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html
    """
    return "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"
