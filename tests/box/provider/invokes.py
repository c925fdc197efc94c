"""Functions of the provider."""

from collections.abc import Callable
from typing import Any

from tests.box.provider.kinds import Aws, picked, told
from tests.box.provider.values import Props


def _region(aws: Aws, given: Props) -> Props:
    name = aws.region(given)
    return {"id": name, "region": name, "name": name, "endpoint": f"ec2.{name}.amazonaws.com", "description": name}


def _identity(aws: Aws, given: Props) -> Props:
    identity = aws.client("sts", given).get_caller_identity()
    return {"id": aws.account, "accountId": identity["Account"], "arn": identity["Arn"], "userId": identity["UserId"]}


def _parameter(aws: Aws, given: Props) -> Props:
    decrypt = given.get("withDecryption", True)
    one = aws.client("ssm", given).get_parameter(Name=given["name"], WithDecryption=decrypt)["Parameter"]
    secret = one["Type"] == "SecureString"
    return {
        "id": one["Name"],
        "arn": one.get("ARN", ""),
        "name": one["Name"],
        "type": one["Type"],
        "value": one["Value"],
        "insecureValue": "" if secret else one["Value"],
        "version": one["Version"],
        "withDecryption": decrypt,
        "region": aws.region(given),
    }


def _instance_type(aws: Aws, given: Props) -> Props:
    name = given["instanceType"]
    one: dict[str, Any] = aws.client("ec2", given).describe_instance_types(InstanceTypes=[name])["InstanceTypes"][0]
    gpus = one.get("GpuInfo", {})
    return told(
        id=name,
        instanceType=name,
        region=aws.region(given),
        bareMetal=one.get("BareMetal"),
        currentGeneration=one.get("CurrentGeneration"),
        defaultVcpus=one["VCpuInfo"]["DefaultVCpus"],
        memorySize=one["MemoryInfo"]["SizeInMiB"],
        supportedArchitectures=one["ProcessorInfo"]["SupportedArchitectures"],
        supportedUsagesClasses=one.get("SupportedUsageClasses"),
        totalGpuMemory=gpus.get("TotalGpuMemoryInMiB"),
        gpuses=[
            picked(gpu, count="Count", manufacturer="Manufacturer", name="Name")
            | {"memorySize": gpu.get("MemoryInfo", {}).get("SizeInMiB", 0)}
            for gpu in gpus.get("Gpus", [])
        ],
    )


INVOKES: dict[str, Callable[[Aws, Props], Props]] = {
    "aws:index/getRegion:getRegion": _region,
    "aws:index/getCallerIdentity:getCallerIdentity": _identity,
    "aws:ssm/getParameter:getParameter": _parameter,
    "aws:ec2/getInstanceType:getInstanceType": _instance_type,
}
