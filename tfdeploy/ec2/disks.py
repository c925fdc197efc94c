"""What EC2 is asked of the user's own volumes."""

from collections.abc import Sequence

from botocore.exceptions import ClientError

from ..errors import SpecError
from . import account


def zone(region: str, where: str, volume_ids: Sequence[str], ours: Sequence[str]) -> str:
    """The zone that all of these volumes are in; empty for no volumes. `ours` are instances that may have them now.

    Raises:
        SpecError: one is not there, or somebody else has it, or they are in several zones.
    """
    zones: dict[str, str] = {}
    for volume_id in volume_ids:
        try:
            with account.answers(region):
                found = account.client("ec2", region).describe_volumes(VolumeIds=[volume_id])["Volumes"][0]
        except ClientError as error:
            words = error.response["Error"]["Message"]
            raise SpecError(where, f"{volume_id} is not in {region} ({words})", "Mend it.") from None
        zones.setdefault(found["AvailabilityZone"], volume_id)
        for other in (one["InstanceId"] for one in found.get("Attachments", [])):
            if other not in ours:
                raise SpecError(where, f"{volume_id} is attached to {other}", "Detach it there, or choose another one.")
    if len(zones) > 1:
        wrong = ", ".join(f"{volume_id} is in {name}" for name, volume_id in zones.items())
        raise SpecError(where, f"{wrong}: the machines of a cluster are in one zone", "Choose volumes of one zone.")
    return next(iter(zones), "")
