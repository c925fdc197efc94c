"""Both networks: the way from one to the other and back, addresses, ports."""

import ipaddress
import json
import random
from pathlib import Path

import pytest

from tests.docker.project import GATED, DockerProject
from tests.waiting import until

JOB = (
    'command=["python", "train.py"], code="code", ps=1, workers=1, env={"COUNTER": __import__("os").environ["COUNTER"]}'
)
SUBNET = f"10.213.{random.randrange(256)}.0/24"
"""Another one than that of another clone's tests on the same engine."""
OVERLAY = f'{JOB}, wait="0", container={{"subnet": "{SUBNET}"}}'
HOST = f'{JOB}, wait="0", container={{"network": "host"}}'
RESOLVE = "import socket; print(socket.gethostbyname('ps-0'))"

LISTENS = """\
import os, socket
listener = socket.socket()
listener.bind(("", int(os.environ["TFDEPLOY_ADDRESS"].rpartition(":")[2])))
listener.listen()
if os.environ["TFDEPLOY_JOB_NAME"] == "worker":
    host, _, port = os.environ["TFDEPLOY_PS_HOSTS"].rpartition(":")
    while True:
        try:
            print(socket.create_connection((host, int(port)), 30).recv(100).decode(), flush=True)
            break
        except ConnectionRefusedError:
            continue
while os.environ["TFDEPLOY_JOB_NAME"] == "ps":
    listener.accept()[0].sendall(f"met the ps of {os.environ['CLUSTER']}".encode())
"""
"""Each task listens on its port, as TensorFlow does; the worker calls on its parameter server."""

CLUSTERS = """\
import pulumi
from tfdeploy import TensorFlowCluster

for name in {names}:
    cluster = TensorFlowCluster(name, {arguments})
    pulumi.export(name, {"state": cluster.state, "logs": cluster.logs, "tasks": cluster.tasks})
"""


def namespaces(project: DockerProject) -> set[bool]:
    """Whether each container of the cluster that runs has the machine's own network."""
    containers = project.left()["container"].split()
    found = project.docker("inspect", "--format", "{{.State.Pid}}", *containers).split()
    pids = [pid for pid in found if pid != "0"]
    assert len(pids) == 3
    return {Path(f"/proc/{pid}/ns/net").samefile("/proc/self/ns/net") for pid in pids}


def flags(project: DockerProject, counts: int) -> str:
    """What the worker was started with last, once all tasks have been started so often."""
    wanted = {"ps-0": counts, "worker-0": counts}
    until(lambda: min(project.counts().values()) == counts, f"start {counts} of all tasks")
    project.until_running("ps-0", "worker-0")
    assert project.counts() == wanted

    def begun() -> list[str]:
        return [line.text for line in project.look(10000).view.logs["worker-0"] if "begins" in line.text]

    until(lambda: len(begun()) == counts, f"{counts} first lines")
    return begun()[-1]


@pytest.mark.full
def test_a_running_job_moves_to_other_addresses_to_the_machines_network_and_back(project: DockerProject) -> None:
    project.write(f'{JOB}, wait="0"', GATED)
    project.up()
    flags(project, 1)

    project.write(OVERLAY, GATED)
    project.up()
    assert flags(project, 2).endswith("--ps_hosts=ps-0:2222 --worker_hosts=worker-0:2222")
    address = project.inside("worker-0", "python", "-c", RESOLVE)
    assert ipaddress.ip_address(address) in ipaddress.ip_network(SUBNET)
    assert len(project.left()["network"].split()) == 1, "the network that was before is gone"
    assert namespaces(project) == {False}, "nothing of it listens on the machine"
    containers = project.left()["container"].split()
    ports = project.docker("inspect", "--format", "{{json .HostConfig.PortBindings}}", *containers).split()
    assert set(ports) == {"{}"}

    project.write(HOST, GATED)
    moved = project.up()
    assert {"test-ps-0", "test-worker-0", "test-run"} <= moved.touched()
    said = flags(project, 3)
    assert "ps-0" not in said
    assert namespaces(project) == {True}
    node = project.docker("info", "--format", "{{.Swarm.NodeAddr}}")
    book = {name: task.address for name, task in project.job().tasks.items()}
    assert said.endswith(f"--ps_hosts={book['ps-0']} --worker_hosts={book['worker-0']}")
    assert {address.partition(":")[0] for address in book.values()} == {node}

    project.write(OVERLAY, GATED)
    project.up()
    assert flags(project, 4).endswith("--ps_hosts=ps-0:2222 --worker_hosts=worker-0:2222")
    assert namespaces(project) == {False}
    project.destroy()


def test_an_encrypted_network_and_a_larger_one(project: DockerProject) -> None:
    project.write(f'{JOB.replace("ps=1, ", "")}, wait="0", docker={{"encrypted": True}}', GATED)
    project.up()
    (network,) = project.left()["network"].split()
    assert '"encrypted"' in project.docker("network", "inspect", "--format", "{{json .Options}}", network)
    project.until_running("worker-0")
    assert project.up("--refresh").steps().keys() == {"unchanged"}

    project.write(f'{JOB.replace("ps=1, ", "")}, wait="0", container={{"subnet": "10.255.252.0/22"}}', GATED)
    project.up()
    until(lambda: min(project.counts().values()) == 2, "the second start, on the larger network")
    assert project.up().steps().keys() == {"unchanged"}
    project.destroy()


def test_two_clusters_on_the_machines_own_network(project: DockerProject) -> None:
    project.names = ["left", "right"]
    arguments = JOB.replace("env={", "env={'CLUSTER': name, ") + ', container={"network": "host"}'

    def write(*names: str) -> None:
        project.write(arguments, LISTENS, CLUSTERS.replace("{names}", repr(names)))

    write("left", "right")
    project.up()
    outputs = project.outputs()
    for name in ("left", "right"):
        assert outputs[name]["state"] == "succeeded"
        assert outputs[name]["logs"]["worker-0"] == [f"met the ps of {name}"]
    addresses = [address for name in project.names for address in {row["address"] for row in outputs[name]["tasks"]}]
    assert len(set(addresses)) == 4
    services = [
        service
        for name in project.names
        for service in project.docker("service", "ls", "--quiet", *project.filters(name)).split()
    ]
    known = [port for port in (json.loads(line) for line in inspect(project, *services)) if port]
    assert len(known) == len(set(known)) == 2

    write("left")
    project.up()
    assert project.outputs().keys() == {"left"}
    assert set(inspect(project, *project.left()["service"].split(), label="cluster")) == {'"left"'}
    project.destroy()


def inspect(project: DockerProject, *services: str, label: str = "port") -> list[str]:
    """A label of services, as JSON."""
    form = f'{{{{json (index .Spec.Labels "tfdeploy.{label}")}}}}'
    return project.docker("service", "inspect", "--format", form, *services).splitlines()
