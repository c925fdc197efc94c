"""A Pulumi project whose AWS provider is the stand-in, as one process for all updates of the project."""

import subprocess
import sys
from collections.abc import Mapping

from tests.integration.conftest import ROOT, Project, imported

EC2_MODULES = (*imported("ec2", "resources"), *(f"pulumi_aws.{part}" for part in ("ebs", "ec2", "efs", "iam", "vpc")))
"""What an update with machines imports."""

SERVE = [sys.executable, "-m", "tests.box.provider.attached"]


class AwsProject(Project):
    """Each update would start a provider else, which reads the models of AWS's services for a second."""

    modules = EC2_MODULES
    _provider: "subprocess.Popen[str] | None" = None

    def begin(self, *command: str, env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """Start a command; the provider starts with the first one, in the environment that the project has then."""
        if self._provider is None:
            self._provider = subprocess.Popen(
                SERVE, cwd=ROOT, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            assert self._provider.stdout is not None
            self.env["PULUMI_DEBUG_PROVIDERS"] = f"aws:{self._provider.stdout.readline().strip()}"
        return super().begin(*command, env=env)

    def end_provider(self) -> None:
        """End the provider; the next command starts another one."""
        if self._provider is not None:
            self._provider.communicate()
            self._provider = None
