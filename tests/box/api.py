"""EC2's API by moto, so changed that its instances are the machines of a fleet.

Moto's state is one for the whole process: what others do in other regions is left to it.
"""

import base64
import copy
import ipaddress
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from unittest.mock import patch

from moto.core.responses import ActionResult, BaseResponse
from moto.core.utils import utcnow
from moto.ec2.exceptions import EC2ClientError, InvalidKeyPairNameError
from moto.ec2.models.elastic_block_store import EBSBackend
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.instances import Instance, InstanceBackend
from moto.ec2.models.vpcs import VPCBackend
from moto.ec2.responses.general import General
from moto.efs.models import EFSBackend

from tests.box.disks import DATA
from tests.box.fleet import Fleet
from tests.box.machine import Launch, Machine
from tests.engine.cli import DockerFailed

REGION = "us-west-2"
Original = Callable[..., Any]


@contextmanager
def patched(
    fleet: Fleet, subnet: ipaddress.IPv4Network, calls: "Counter[str]", weather: Callable[[Original], Original]
) -> Iterator[None]:
    """Have moto run this fleet on this subnet, and count the calls of its API's actions that `weather` lets through."""
    changes: list[tuple[Any, str, Callable[[Original], Original]]] = [
        (VPCBackend, "create_vpc", lambda original: _create_vpc(original, subnet)),
        (InstanceBackend, "run_instances", lambda original: _run_instances(original, fleet, subnet)),
        (Instance, "terminate", lambda original: _terminate(original, fleet)),
        (Instance, "stop", lambda original: _both(original, fleet, Machine.stop)),
        (Instance, "start", lambda original: _both(original, fleet, Machine.start)),
        (Instance, "reboot", lambda original: _both(original, fleet, Machine.reboot)),
        (NetworkInterface, "check_auto_public_ip", _public_ip),
        (General, "get_console_output", lambda original: _console(original, fleet)),
        (EBSBackend, "attach_volume", lambda original: _attach_volume(original, fleet)),
        (EBSBackend, "detach_volume", lambda original: _detach_volume(original, fleet)),
        (EBSBackend, "delete_volume", lambda original: _delete_volume(original, fleet)),
        (EFSBackend, "create_mount_target", lambda original: _create_mount_target(original, fleet)),
        (BaseResponse, "call_action", lambda original: _counted(original, calls)),
        (BaseResponse, "call_action", weather),
        (BaseResponse, "call_action", _apart),
    ]
    with ExitStack() as stack:
        for owner, name, change in changes:
            stack.enter_context(patch.object(owner, name, change(getattr(owner, name))))
        yield


def _create_vpc(original: Original, subnet: ipaddress.IPv4Network) -> Original:
    def create_vpc(backend: Any, cidr_block: str, *arguments: Any, is_default: bool = False, **named: Any) -> Any:
        block = str(subnet) if is_default and backend.region_name == REGION else cidr_block
        return original(backend, block, *arguments, is_default=is_default, **named)

    return create_vpc


def _run_instances(original: Original, fleet: Fleet, subnet: ipaddress.IPv4Network) -> Original:
    def run_instances(backend: Any, *arguments: Any, **named: Any) -> Any:
        if backend.region_name != REGION:
            return original(backend, *arguments, **named)
        key = named.get("key_name")
        if key and key not in backend.key_pairs:
            raise InvalidKeyPairNameError(key)
        interfaces = set(backend.enis)
        reservation = original(backend, *arguments, **named)
        for instance in reservation.instances:
            for interface in instance.nics.values():
                # As on EC2: an interface that was made with the instance goes with it.
                interface.delete_on_termination = interface.id not in interfaces
        try:
            _check(reservation.instances, subnet)
            fleet.boot(
                {instance.id: (_launch(backend, instance, fleet), instance) for instance in reservation.instances}
            )
        except Exception:
            for instance in reservation.instances:
                instance.terminate()
            raise
        return reservation

    return run_instances


def _check(instances: list[Any], subnet: ipaddress.IPv4Network) -> None:
    for instance in instances:
        if ipaddress.ip_address(instance.private_ip) not in subnet:
            raise EC2ClientError("Unsupported", f"the box has machines in subnets of {subnet} only")


def _launch(backend: Any, instance: Any, fleet: Fleet) -> Launch:
    key = backend.key_pairs.get(instance.key_name)
    return Launch(
        instance_id=instance.id,
        address=instance.private_ip,
        user_data=base64.b64decode(str(instance.user_data)) if instance.user_data else b"",
        public_keys=[key.public_key.strip()] if key else [],
        devices=fleet.disks.of(instance.id),
    )


def _terminate(original: Original, fleet: Fleet) -> Original:
    def terminate(instance: Any) -> Any:
        machine = fleet.machines.get(instance.id)
        if machine is None:
            return original(instance)
        with machine.lock:
            if instance.state == "terminated":
                return instance._state
            previous = copy.copy(instance._state)
            instance._state.name, instance._state.code = "shutting-down", 32
            with suppress(DockerFailed):
                machine.stop()
            machine.remove()
            original(instance)  # its address is another machine's from here on
            return previous

    return terminate


def _both(original: Original, fleet: Fleet, change: Callable[[Machine], None]) -> Original:
    def changed(instance: Any) -> Any:
        machine = fleet.machines.get(instance.id)
        if machine is None:
            return original(instance)
        with machine.lock:
            previous = original(instance)
            change(machine)
            return previous

    return changed


def _public_ip(original: Original) -> Original:
    def check_auto_public_ip(interface: Any) -> None:
        original(interface)
        # A machine of the box is reached by its private address from everywhere: that is its public one too.
        if interface.public_ip and interface.ec2_backend.region_name == REGION:
            interface.public_ip = interface.private_ip_address

    return check_auto_public_ip


def _console(original: Original, fleet: Fleet) -> Original:
    def get_console_output(response: Any) -> Any:
        instance = response.ec2_backend.get_instance(response._get_param("InstanceId"))
        if instance.id not in fleet.machines:
            return original(response)
        output = base64.b64encode(fleet.machines[instance.id].console()).decode()
        return ActionResult({"InstanceId": instance.id, "Timestamp": utcnow(), "Output": output})

    return get_console_output


def _attach_volume(original: Original, fleet: Fleet) -> Original:
    def attach_volume(
        backend: Any, volume_id: str, instance_id: str, device_path: str, *more: Any, **named: Any
    ) -> Any:
        made = original(backend, volume_id, instance_id, device_path, *more, **named)
        if made is not None and backend.region_name == REGION and DATA.fullmatch(device_path):
            fleet.attach(instance_id, device_path, volume_id, made.volume.size)
        return made

    return attach_volume


def _detach_volume(original: Original, fleet: Fleet) -> Original:
    def detach_volume(backend: Any, volume_id: str, instance_id: str, device_path: str) -> Any:
        gone = original(backend, volume_id, instance_id, device_path)
        if backend.region_name == REGION:
            fleet.detach(instance_id, gone.device)
        return gone

    return detach_volume


def _delete_volume(original: Original, fleet: Fleet) -> Original:
    def delete_volume(backend: Any, volume_id: str) -> Any:
        gone = original(backend, volume_id)
        if backend.region_name == REGION:
            fleet.disks.delete(volume_id)
        return gone

    return delete_volume


def _create_mount_target(original: Original, fleet: Fleet) -> Original:
    def create_mount_target(backend: Any, *arguments: Any, **named: Any) -> Any:
        made = original(backend, *arguments, **named)
        if backend.region_name == REGION:
            (fleet.floor.efs / made.file_system_id).mkdir(exist_ok=True)
        return made

    return create_mount_target


def _counted(original: Original, calls: "Counter[str]") -> Original:
    def call_action(response: Any) -> Any:
        calls[response._get_action()] += response.region == REGION
        return original(response)

    return call_action


def _apart(original: Original) -> Original:
    """Moto's responses write into a dictionary of their class while those of other calls read it."""

    def call_action(response: Any) -> Any:
        response.RESPONSE_KEY_PATH_TO_TRANSFORMER = dict(response.RESPONSE_KEY_PATH_TO_TRANSFORMER)
        return original(response)

    return call_action
