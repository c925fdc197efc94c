"""Types and names of resources are frozen: Pulumi would delete what has another one, and create it again."""

from pathlib import Path

import pytest

from tests.ec2.registering import registered

pytestmark = pytest.mark.usefixtures("moto_account")

RESOURCES = """\
aws:ec2/instance:Instance mnist-ps-m0
aws:ec2/instance:Instance mnist-worker-m0
aws:ec2/keyPair:KeyPair mnist-key
aws:ec2/securityGroup:SecurityGroup mnist-members
aws:efs/fileSystem:FileSystem mnist-efs
aws:efs/mountTarget:MountTarget mnist-efs-target
aws:iam/instanceProfile:InstanceProfile mnist-manager-profile
aws:iam/role:Role mnist-manager
aws:iam/rolePolicy:RolePolicy mnist-manager-record
aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule mnist-out
aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule mnist-from-members-efs
aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule mnist-from-members-gossip-tcp
aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule mnist-from-members-gossip-udp
aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule mnist-from-members-overlay
aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule mnist-from-members-swarm
aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule mnist-ssh-0
docker:index/network:Network mnist-network
docker:index/registryImage:RegistryImage mnist-image-0-pushed
docker:index/secret:Secret mnist-secret-KEY
docker:index/secret:Secret mnist-token
docker:index/serviceConfig:ServiceConfig mnist-agent
pulumi-python:dynamic/tfdeploy:Cleanup mnist-cleanup
pulumi-python:dynamic/tfdeploy:Image mnist-image-0
pulumi-python:dynamic/tfdeploy:RecordBucket mnist-record-bucket
pulumi-python:dynamic/tfdeploy:Run mnist-run
pulumi-python:dynamic/tfdeploy:SshKey mnist-ssh-key
pulumi-python:dynamic/tfdeploy:Swarm mnist-swarm
pulumi-python:dynamic/tfdeploy:Task mnist-ps-0
pulumi-python:dynamic/tfdeploy:Task mnist-worker-0
pulumi:index:Stash mnist-id
pulumi:providers:docker mnist-engine
tfdeploy:index:TensorFlowCluster mnist"""
"""What a cluster on EC2 registers; `docker` registers the same, without machines."""


def test_the_resources_of_a_cluster_have_the_types_and_names_that_states_have(tmp_path: Path) -> None:
    container = {"registry": "registry.example.com/team"}
    resources = registered(tmp_path, workers=1, secrets={"KEY": "a"}, requirements=["a==1"], container=container)
    assert "\n".join(sorted(f"{item.kind} {item.name}" for item in resources)) == RESOURCES
