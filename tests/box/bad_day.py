"""What AWS answers on a bad day, and moto never does: Box.bad_day() switches it on.

Each fault is decided by counters: the same calls meet the same faults. Key pairs and the rules of security groups are
found at once, for the real provider does not wait for them either (tests/box/provider/retries.py). S3 has good days only.
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
"""

import enum
import json
import re
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape

from tests.box.account import ec2
from tests.box.api import REGION, Original


class Fault(enum.Enum):
    """The kinds of faults."""

    NOT_FOUND = "the first question for something that was just created"
    PROFILE = "a new instance profile that EC2 does not know yet"
    GROUP_IN_USE = "a security group whose machines have just ended"
    THROTTLED = "too many calls"
    NO_CAPACITY = "no capacity for an instance"


@dataclass(frozen=True)
class _Made:
    """How something that a call has created is asked for first."""

    tag: str
    """The field of the answer that names it."""
    asked: str
    """The call that asks for it."""
    parameter: str
    """The parameter of that call that names it, or the start of its name."""
    code: str
    status: int = 400


_MADE = {
    "RunInstances": _Made("instanceId", "DescribeInstances", "InstanceId", "InvalidInstanceID.NotFound"),
    "CreateSecurityGroup": _Made("groupId", "DescribeSecurityGroups", "GroupId", "InvalidGroup.NotFound"),
    "CreateVolume": _Made("volumeId", "DescribeVolumes", "VolumeId", "InvalidVolume.NotFound"),
    "CreateRole": _Made("RoleName", "GetRole", "RoleName", "NoSuchEntity", 404),
    "CreateInstanceProfile": _Made(
        "InstanceProfileName", "GetInstanceProfile", "InstanceProfileName", "NoSuchEntity", 404
    ),
    "CreateFileSystem": _Made("FileSystemId", "DescribeFileSystems", "FileSystemId", "FileSystemNotFound", 404),
    "CreateMountTarget": _Made("MountTargetId", "DescribeMountTargets", "MountTargetId", "MountTargetNotFound", 404),
}
_THROTTLED = {
    "ec2": ("RequestLimitExceeded", 503, "Request limit exceeded."),
    "iam": ("Throttling", 400, "Rate exceeded"),
    "efs": ("ThrottlingException", 429, "Rate exceeded"),
}
"""https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html, and each service's list of common errors."""
_TAKES_PROFILE = ("RunInstances", "AssociateIamInstanceProfile", "ReplaceIamInstanceProfileAssociation")


class _Answer(Exception):
    """An error of AWS's, with the status of its answer."""

    def __init__(self, code: str, status: int, message: str) -> None:
        super().__init__(message)
        self.code, self.status, self.message = code, status, message


@dataclass
class BadDay:
    """The faults of one bad day; `happened` counts them."""

    every: int = 10
    """Each call of this number is throttled; 0 for none."""
    profile_calls: int = 3
    """So many calls with a new instance profile are refused."""
    group_calls: int = 3
    """So often a security group cannot be deleted that a machine was in: its network interface lingers."""
    without_capacity: int = 1
    """So many calls of RunInstances find no capacity."""
    short_of: set[str] = field(default_factory=set)
    """Instance types of which there are none for as long as they are named here."""
    happened: "Counter[Fault]" = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _calls: int = 0
    _new: dict[tuple[str, str], _Made] = field(default_factory=dict)
    _left: "Counter[tuple[Fault, str]]" = field(default_factory=Counter)

    @property
    def missed(self) -> set[Fault]:
        """The kinds that have not happened."""
        return {fault for fault in Fault if not self.happened[fault]}

    def call(self, original: Original, response: Any) -> Any:
        """Answer one call of the API."""
        service = str(response.boto3_service_name)
        if service not in _THROTTLED or (service != "iam" and response.region != REGION):
            return original(response)
        action, given = str(response._get_action()), _parameters(response)
        try:
            with self._lock:
                self._check(service, action, given)
        except _Answer as answer:
            return _told(service, answer)
        status, headers, body = original(response)
        if int(status) < 300:
            with self._lock:
                self._remember(action, str(body))
        return status, headers, body

    def _check(self, service: str, action: str, given: dict[str, str]) -> None:
        """Raise an error where the day is bad."""
        self._calls += 1
        if self.every and self._calls % self.every == 0:
            self._raise(Fault.THROTTLED, *_THROTTLED[service])
        for (asked, key), made in list(self._new.items()):
            if asked == action and any(name.startswith(made.parameter) and v == key for name, v in given.items()):
                del self._new[asked, key]
                self._raise(Fault.NOT_FOUND, made.code, made.status, f"{key} does not exist")
        if action in _TAKES_PROFILE:
            self._check_profile(given.get("IamInstanceProfile.Name", ""))
        if action == "RunInstances":
            self._check_capacity(given)
        if action == "DeleteSecurityGroup" and self._counts(Fault.GROUP_IN_USE, given.get("GroupId", "")):
            message = f"resource {given['GroupId']} has a dependent object"
            self._raise(Fault.GROUP_IN_USE, "DependencyViolation", 400, message)

    def _check_profile(self, name: str) -> None:
        if self._counts(Fault.PROFILE, name):
            why = f"Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
            self._raise(Fault.PROFILE, "InvalidParameterValue", 400, why)

    def _check_capacity(self, given: dict[str, str]) -> None:
        kind, zone = given.get("InstanceType", ""), given.get("Placement.AvailabilityZone") or _zone(given)
        if kind not in self.short_of:
            if self.without_capacity < 1:
                return
            self.without_capacity -= 1
        others = ", ".join(f"{REGION}{letter}" for letter in "abc" if f"{REGION}{letter}" != zone)
        message = (
            f"We currently do not have sufficient {kind} capacity in the Availability Zone you requested ({zone}). Our"
            f" system will be working on provisioning additional capacity. You can currently get {kind} capacity by not"
            f" specifying an Availability Zone in your request or choosing {others}."
        )
        self._raise(Fault.NO_CAPACITY, "InsufficientInstanceCapacity", 500, message)

    def _counts(self, fault: Fault, key: str) -> bool:
        """Whether the fault still happens to this one; it does so once less from now on."""
        self._left[fault, key] -= 1
        return self._left[fault, key] >= 0

    def _raise(self, fault: Fault, code: str, status: int, message: str) -> None:
        self.happened[fault] += 1
        raise _Answer(code, status, message)

    def _remember(self, action: str, body: str) -> None:
        """Note what a call has created, and the security groups of machines."""
        made = _MADE.get(action)
        if made is None:
            return
        found = re.findall(rf'[<"]{made.tag}[>"](?:\s*:\s*")?([^<"]+)[<"]', body)
        for key in found:
            self._new[made.asked, key] = made
            if action == "CreateInstanceProfile":
                self._left[Fault.PROFILE, key] = self.profile_calls
        for group in _groups(found) if action == "RunInstances" else ():
            self._left[Fault.GROUP_IN_USE, group] = self.group_calls


def _parameters(response: Any) -> dict[str, str]:
    """The parameters of a call by name."""
    return {name: str(values[0]) for name, values in response.querystring.items() if values}


def _told(service: str, answer: _Answer) -> tuple[int, dict[str, str], str]:
    """The answer as the service's protocol has it."""
    if service == "efs":
        said = {"ErrorCode": answer.code, "Message": answer.message}
        return answer.status, {"Content-Type": "application/json", "x-amzn-ErrorType": answer.code}, json.dumps(said)
    error = f"<Error><Code>{answer.code}</Code><Message>{escape(answer.message)}</Message></Error>"
    if service == "ec2":
        body = f"<Response><Errors>{error}</Errors><RequestID>bad-day</RequestID></Response>"
    else:
        body = f"<ErrorResponse>{error}<RequestId>bad-day</RequestId></ErrorResponse>"
    return answer.status, {"Content-Type": "text/xml"}, body


def _groups(instances: list[str]) -> set[str]:
    """The security groups of these instances."""
    found = [one for one in ec2().all_instances() if one.id in instances]
    return {group.id for one in found for card in one.nics.values() for group in card.group_set}


def _zone(given: dict[str, str]) -> str:
    """The zone of the subnet that a call of RunInstances names."""
    named = given.get("SubnetId") or next((v for name, v in given.items() if name.endswith(".SubnetId")), "")
    return next((one.availability_zone for one in ec2().describe_subnets() if one.id == named), f"{REGION}a")


class Days:
    """The bad day that it is, if it is one."""

    def __init__(self) -> None:
        self.now: BadDay | None = None

    def wrapped(self, original: Original) -> Original:
        """Moto's `BaseResponse.call_action`, on bad days too."""

        def call_action(response: Any) -> Any:
            return original(response) if self.now is None else self.now.call(original, response)

        return call_action
