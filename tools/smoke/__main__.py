"""A small cluster on AWS itself: created, used, destroyed; and one file with all that differs from the box.

`make aws-smoke`, or `python -m tools.smoke [--yes]`. It costs money: at most `BUDGET`.
"""

import argparse
import getpass
import json
import re
import shlex
import shutil
import socket
import sys
import time
import tomllib
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from tfdeploy import registry
from tfdeploy.backends.ec2.aws.account import default_region
from tfdeploy.paths import state_folder
from tools.smoke.call_log import CallLog
from tools.smoke.commands import Commands, interruptible, print_if_possible, uninterruptible
from tools.smoke.findings import MACHINE_FACTS, Step, connection_times, differing_facts, differing_properties, document

ROOT = Path(__file__).parents[2]
FACTS = ROOT / "tests/box/provider/facts.toml"
BUDGET = 0.50
"""USD: the argument `ec2.budget`, which refuses a plan that may cost more."""

LIFETIME = "20m"
_STACK, _NAME = "smoke", "smoke"
_ADDRESS = "https://checkip.amazonaws.com"
_POLL_SECONDS = 5.0
_START_SECONDS = 900.0
_NOT_STARTED = 2
_MARKER = "of-tfdeploy-smoke"
"""A file in each folder that this program has created, and may replace."""
_VARIABLES = ("PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE", "XDG_STATE_HOME")
_SHORT_NAME = 4
_SHOWN = ("pulumi preview", "pulumi up", "pulumi destroy", "tfdeploy status", "tfdeploy events", "tfdeploy logs")
"""The beginnings of the steps that the file has with their output."""
_ENDED = ("succeeded", "failed", "killed", "stopped", "out of memory")
_PROGRAM = """\
import pulumi
from tfdeploy import TensorFlowCluster

cluster = TensorFlowCluster("smoke")
for name in ("state", "tasks", "machines", "cost"):
    pulumi.export(name, getattr(cluster, name))
"""


class SmokeFailed(Exception):
    """A step did not do what it should."""


_ERRORS = (SmokeFailed, OSError, ValueError, LookupError, TypeError, BotoCoreError, ClientError)
"""What may go wrong in a step: it is reported, and the next steps are tried."""


@dataclass(frozen=True)
class Options:
    """The command line."""

    yes: bool
    region: str
    instance_type: str
    image: str
    ssh_cidr: str
    code: Path
    command: str
    folder: Path
    report: Path
    """The file that is sent back."""


def options(arguments: Sequence[str]) -> Options:
    """The command line, read."""
    parser = argparse.ArgumentParser(prog="make aws-smoke", description=__doc__)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--region", default=default_region() or "us-west-2")
    parser.add_argument("--instance-type", default="t3.medium")
    parser.add_argument("--image", default="", help="image of the tasks; default: tfdeploy's")
    parser.add_argument("--ssh-cidr", default="", help="your address; default: what checkip.amazonaws.com reports")
    parser.add_argument("--code", type=Path, default=ROOT / "programs/mnist/train")
    parser.add_argument("--command", default="python train.py --steps 5000")
    # Not in the clone: the state is what the cluster is destroyed with.
    folder = state_folder().with_name("tfdeploy-smoke") / "aws-smoke"
    parser.add_argument("--folder", type=Path, default=folder, help="state of Pulumi and of tfdeploy (%(default)s)")
    parser.add_argument("--report", type=Path, default=ROOT / "build/aws-smoke.txt", help="the file that is written")
    read = vars(parser.parse_args(arguments))
    return Options(**{**read, "folder": read["folder"].absolute(), "report": read["report"].absolute()})


def settings(chosen: Options, key: Path) -> dict[str, str]:
    """The stack's configuration."""
    ec2: dict[str, Any] = {
        "instance_type": chosen.instance_type,
        "ssh_public_key": f"{key}.pub",
        "ssh_cidrs": [chosen.ssh_cidr or f"{urllib.request.urlopen(_ADDRESS, timeout=20).read().decode().strip()}/32"],
        "efs": "new",
        "budget": BUDGET,
        "max_lifetime": LIFETIME,
        "root_volume_size": "30GiB",
        "retain_record": False,
    }
    container = {"retain_volumes": False, **({"image": chosen.image} if chosen.image else {})}
    return {
        "aws:region": chosen.region,
        "aws:maxRetries": "8",  # The provider's 25 take longer than an interrupted command has.
        "tfdeploy:backend": "ec2",
        "tfdeploy:ec2": json.dumps(ec2),
        "tfdeploy:container": json.dumps(container),
        "tfdeploy:command": json.dumps(chosen.command.split()),
        "tfdeploy:code": str(chosen.code.absolute()),
        "tfdeploy:ps": "1",
        "tfdeploy:workers": "1",
        "tfdeploy:wait": "0",
    }


class Smoke:
    """One run of the smoke test."""

    def __init__(self, chosen: Options, commands: Commands, calls: CallLog) -> None:
        self._chosen = chosen
        self._commands = commands
        self._calls = calls
        self._seen: list[str] = []
        self._facts: list[str] = []
        self._properties: list[str] = []
        self._left: list[str] = []
        self._problems: list[str] = []

    def run(self) -> bool:
        """Create, use and destroy the cluster; True where all did what it should."""
        with uninterruptible("The cluster is being destroyed. Please wait."):
            try:
                with interruptible():
                    self._use()
            except KeyboardInterrupt:
                self._problems.append("interrupted")
            except _ERRORS as error:
                self._problems.append(str(error) or repr(error))
            finally:
                self._destroy()
        return not self._problems

    def _use(self) -> None:
        self._must("pulumi", "stack", "init", _STACK)
        key = self._chosen.folder / "key"
        self._must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
        config = [f"--plaintext={name}={value}" for name, value in settings(self._chosen, key).items()]
        self._must("pulumi", "config", "set-all", "--stack", _STACK, *config)
        self._must("pulumi", "preview", "--stack", _STACK)
        self._must("pulumi", "up", "--yes", "--skip-preview", "--stack", _STACK)
        self._until_running()
        self._must("tfdeploy", "status", "--stack", _STACK)
        self._must("tfdeploy", "logs", "--stack", _STACK)
        self._must("tfdeploy", "exec", "--stack", _STACK, "ps-0", "uname", "-r")
        self._look_at_machines()
        self._must("tfdeploy", "wait", "--timeout", "10m", "--stack", _STACK)
        self._must("tfdeploy", "events", "--stack", _STACK)
        again = self._must("pulumi", "up", "--yes", "--skip-preview", "--stack", _STACK, "--diff")
        if any(f" {word}" in again.output.rpartition("Resources:")[2] for word in ("created", "updated", "replaced")):
            self._problems.append("a second `pulumi up` changed something (see the steps)")
        export = self._must("pulumi", "stack", "export", "--stack", _STACK, shown=False)
        resources = parsed(export.output)["deployment"]["resources"]
        self._properties = differing_properties(resources, tomllib.loads(FACTS.read_text()))

    def _must(self, *command: str, shown: bool = True) -> Step:
        step = self._commands.run(*command, shown=shown)
        if step.exit_code:
            raise SmokeFailed(f"`{' '.join(command[:2])}` failed with exit code {step.exit_code}")
        return step

    def _until_running(self) -> None:
        """Wait until the worker runs, and note each state that is new."""
        begun, last = time.monotonic(), ""
        while time.monotonic() - begun < _START_SECONDS:
            step = self._must("tfdeploy", "status", "--json", "--stack", _STACK, shown=False)
            self._commands.steps.pop()
            (cluster,) = parsed(step.output)
            machines = {row["machine"]: row["status"] for row in cluster["machines"]}
            tasks = {row["hostname"]: row["status"] for row in cluster["tasks"]}
            states = ", ".join(f"{name} {status}" for name, status in {**machines, **tasks}.items())
            if states != last:
                last = states
                self._seen.append(f"after {time.monotonic() - begun:.0f} s: {states}")
                print_if_possible(self._seen[-1])
            if tasks.get("worker-0", "").startswith(("running", *_ENDED)):
                return
            time.sleep(_POLL_SECONDS)
        raise SmokeFailed(f"worker-0 did not start within {_START_SECONDS:g} s")

    def _look_at_machines(self) -> None:
        for machine in (f"{_NAME}-ps-m0", f"{_NAME}-worker-m0"):
            facts = {}
            for name, command in MACHINE_FACTS.items():
                ssh = f"tfdeploy exec --machine --stack {_STACK} {machine} -- sudo -n sh -c".split()
                step = self._commands.run(*ssh, f"'{_quoted(command)}'", shown=False)
                self._commands.steps.pop()
                facts[name] = step.output.strip().replace("\n", "; ")
            self._facts += differing_facts(machine, facts)

    def _destroy(self) -> None:
        """Destroy the cluster, whatever happened before, and list what is left."""
        for part in (self._cancel_and_destroy, self._list_leftovers, self._list_tagged):
            try:
                part()
            except _ERRORS as error:
                self._problems.append(f"{part.__name__.strip('_').replace('_', ' ')}: {error or repr(error)}")
        if self._left:
            self._problems.append("resources are left (see the end)")

    def _cancel_and_destroy(self) -> None:
        self._commands.run("pulumi", "cancel", "--yes", "--stack", _STACK, shown=False)
        for _ in range(2):
            if not self._commands.run("pulumi", "destroy", "--yes", "--stack", _STACK).exit_code:
                return
        print_if_possible(f"\nThe cluster still exists. {destroy_advice(self._chosen)}")
        raise SmokeFailed("`pulumi destroy` failed: check the EC2 console")

    def _list_leftovers(self) -> None:
        listing = self._commands.run("tfdeploy", "ls", "--leftovers", "--json", "--stack", _STACK).output
        try:
            leftovers = parsed(listing)["leftovers"]
        except (ValueError, LookupError, TypeError):
            leftovers = [listing]
        self._left += [f"leftovers: {item}" for item in leftovers]

    def _list_tagged(self) -> None:
        """What EC2 has with the tag of the project."""
        ec2 = boto3.client("ec2", region_name=self._chosen.region)
        tagged = [{"Name": "tag:tfdeploy:project", "Values": [_project(self._chosen)]}]
        live = [*tagged, {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}]
        machines = [
            item for group in ec2.describe_instances(Filters=live)["Reservations"] for item in group["Instances"]
        ]
        names = [item["InstanceId"] for item in machines]
        names += [item["VolumeId"] for item in ec2.describe_volumes(Filters=tagged)["Volumes"]]
        names += [item["GroupId"] for item in ec2.describe_security_groups(Filters=tagged)["SecurityGroups"]]
        names += [item["KeyPairId"] for item in ec2.describe_key_pairs(Filters=tagged)["KeyPairs"]]
        self._left += [f"by tag: {name}" for name in names]

    def text(self, words: Sequence[str]) -> str:
        """The file that is sent back."""
        versions = [f"{name} {version}" for name, version in registry.versions().items()]
        up = [step.output for step in self._commands.steps if step.command.startswith("pulumi up")]
        sections = {
            "Result": self._problems or ["everything did what it should"],
            "Versions": [*versions, f"region {self._chosen.region}, {self._chosen.instance_type}"],
            "Steps": [
                f"{step.seconds:7.1f} s, exit code {step.exit_code}: {step.command[:100]}"
                for step in self._commands.steps
            ],
            "Time until machines were connected": [line for output in up for line in connection_times(output)],
            "States": self._seen,
            "Machines, where they differ from the box": self._facts,
            "Properties, where they differ from the table of the box": self._properties,
            "Calls of AWS by boto3": self._calls.summary(),
            "Left after destroy": self._left,
        }
        failed = [step for step in self._commands.steps if step.exit_code]
        others = [step for step in self._commands.steps if not step.exit_code and step.command.startswith(_SHOWN)]
        shown = {f"Output of `{step.command[:60]}`": step.output.splitlines()[-200:] for step in (*failed, *others)}
        return document({**sections, **shown}, words)


def _quoted(command: str) -> str:
    """For ssh: the remote shell reads the command once more."""
    return command.replace("'", "'\\''")


def _project(chosen: Options) -> str:
    return f"aws-{chosen.folder.name}"


def parsed(output: str) -> Any:
    """The JSON document that a command printed, after its warnings.

    Raises:
        ValueError: it printed none.
    """
    text = re.search(r"^[\[{].*", output, re.DOTALL | re.MULTILINE)
    return json.loads(text[0] if text else "")


def refuse_used(chosen: Options) -> None:
    """Refuse a folder with other files, or with the state of a cluster that still exists.

    Raises:
        SmokeFailed: it has them.
    """
    folder = chosen.folder
    if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or (folder / _MARKER).exists())):
        raise SmokeFailed(f"--folder: {folder} has files that are not of this program. Choose a new folder.")
    stacks = [
        path for path in (folder / "state/.pulumi/stacks").rglob("*") if path.name.endswith((".json", ".json.gz"))
    ]
    if any(map(_has_resources, stacks)):
        raise SmokeFailed(f"{folder} has the state of a cluster that was not destroyed. {destroy_advice(chosen)}")


def _has_resources(stack: Path) -> bool:
    """Whether a stack has resources; true where its file cannot be read."""
    try:
        latest = json.loads(stack.read_text())["checkpoint"].get("latest") or {}
        return bool(latest.get("resources") or latest.get("pending_operations"))
    except (ValueError, LookupError, TypeError, AttributeError):
        return True


def destroy_advice(chosen: Options) -> str:
    """How a cluster is destroyed that is left."""
    variables = {name: value for name, value in _environment(chosen).items() if name in _VARIABLES}
    words = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    program = shlex.quote(str(chosen.folder / "program"))
    return (
        f"Destroy it, with the same credentials: `cd {program} && export {words}"
        f" && pulumi cancel --yes --stack {_STACK}; pulumi destroy --yes --stack {_STACK}`"
    )


def prepare(chosen: Options) -> dict[str, str]:
    """Create the folder of the program; the environment of the commands. tfdeploy's own state of earlier runs stays."""
    folder = chosen.folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARKER).touch()
    for name in ("program", "state"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
    for name in ("key", "key.pub"):
        (folder / name).unlink(missing_ok=True)
    (folder / "program/Pulumi.yaml").write_text(f"name: {_project(chosen)}\nruntime: python\n")
    (folder / "program/__main__.py").write_text(_PROGRAM)
    return _environment(chosen)


def _environment(chosen: Options) -> dict[str, str]:
    return {
        "PULUMI_BACKEND_URL": f"file://{chosen.folder}/state",
        "PULUMI_CONFIG_PASSPHRASE": "",
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        "XDG_STATE_HOME": str(chosen.folder / "tfdeploy"),
        "NO_COLOR": "1",
    }


def confirmed(chosen: Options, account: str) -> bool:
    """Whether the user agrees to the cost, in this account."""
    print(
        f"Account {account}, region {chosen.region}: two {chosen.instance_type} machines and a file system will be created,"
    )
    print(
        f"used for a few minutes, and destroyed. The cost is at most ${BUDGET:.2f}; machines end after {LIFETIME} in any case."
    )
    print(f"The result is written to {chosen.report}, without account ids, keys and addresses.")
    return chosen.yes or (sys.stdin.isatty() and input("Start? [y/N] ").strip().lower() in ("y", "yes"))


def _names_of_computer() -> list[str]:
    """The names of user and computer, as the tag `tfdeploy:owner` has them; a short name is part of other words."""
    host = socket.gethostname()
    return [f"{getpass.getuser()}@{host}", *([host] if len(host) > _SHORT_NAME else [])]


def _aliases(region: str) -> list[str]:
    """The names of the account, as a preview prints them; a short name alone is part of other words."""
    try:
        names = boto3.client("iam", region_name=region).list_account_aliases()["AccountAliases"]
    except (BotoCoreError, ClientError):
        return []
    return [f"({name})" if len(name) <= _SHORT_NAME else name for name in names]


def main(arguments: Sequence[str]) -> int:
    """Run the smoke test; its exit code."""
    chosen = options(arguments)
    try:
        refuse_used(chosen)
    except SmokeFailed as error:
        print(f"{error}\nNothing was created.", file=sys.stderr)
        return _NOT_STARTED
    account = str(boto3.client("sts", region_name=chosen.region).get_caller_identity()["Account"])
    if not confirmed(chosen, account):
        print("Nothing was created.")
        return _NOT_STARTED
    aliases = _aliases(chosen.region)
    calls = CallLog()
    with calls.receiving():
        environment = {**prepare(chosen), **calls.environment}
        smoke = Smoke(chosen, Commands(chosen.folder / "program", environment), calls)
        try:
            succeeded = smoke.run()
        finally:
            words = [account, *aliases, str(Path.home()), str(ROOT), *_names_of_computer()]
            chosen.report.parent.mkdir(parents=True, exist_ok=True)
            chosen.report.write_text(smoke.text(words))
    print_if_possible(f"\nPlease read {chosen.report}, and send it to an author: git log --format='%an <%ae>' -1")
    return 0 if succeeded else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
