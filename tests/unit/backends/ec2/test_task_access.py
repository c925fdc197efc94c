"""A machine is lost only when EC2 says so."""

from typing import Any, cast

import pytest

from tests.unit.backends.ec2.fleets import CLUSTER
from tfdeploy.backends.ec2.machine import ssh
from tfdeploy.backends.ec2.machine.ssh import Host, SshHosts
from tfdeploy.backends.ec2.task_access import Ec2Access
from tfdeploy.errors import BackendError, NotFound


def test_the_tasks_of_a_machine_that_does_not_respond_need_ec2s_word(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = SshHosts("mnist-ps-m0", "ec2-user", {"mnist-worker-m0": Host("i-1", "10.0.0.2", "")})
    monkeypatch.setattr(ssh, "read", lambda cluster: hosts)
    with pytest.raises(BackendError, match=r"`aws ec2 terminate-instances --region us-west-2 --instance-ids i-1`"):
        Ec2Access(cast(Any, None)).lost_effect(CLUSTER, "mnist-worker-m0")
    with pytest.raises(NotFound):
        Ec2Access(cast(Any, None)).lost_effect(CLUSTER, "mnist-worker-m1")
