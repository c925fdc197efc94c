"""The machine of one instance: a container on the outer engine, with an engine, cloud-init and sshd of its own."""

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.box.disks import MAJOR
from tests.engine.cli import LABEL, DockerFailed, docker, environment
from tests.engine.nested import remove_cgroups, rights
from tests.waiting import until

CONSOLE = 64 * 1024
SHUTDOWN = 30
"""How many seconds a machine has to shut down before its power is cut."""
FREEZER = Path("/sys/fs/cgroup/freezer")


@dataclass(frozen=True)
class Floor:
    """What the machines of a box share: the engine under them, a network, a folder of ours, an image."""

    outer: str
    name: str
    home: Path
    registry: str
    image: str

    @property
    def efs(self) -> Path:
        """The folder with a folder for each EFS file system."""
        return self.home / "efs"


@dataclass(frozen=True)
class Launch:
    """What EC2 gives an instance."""

    instance_id: str
    address: str
    user_data: bytes = b""
    public_keys: Sequence[str] = ()
    devices: Mapping[str, int] = field(default_factory=dict)
    """Its further disks: device to the minor number of its loop device."""

    @property
    def hostname(self) -> str:
        """As on EC2: after the private address."""
        return f"ip-{self.address.replace('.', '-')}"


@dataclass
class Machine:
    """A machine, from its boot to its end; `lock` is held by whoever changes it."""

    floor: Floor
    launch: Launch
    lock: threading.RLock = field(default_factory=threading.RLock)
    last_words: bytes = b""

    @property
    def container(self) -> str:
        """Its name on the outer engine; the cgroup of its own engine is called so too."""
        return f"{self.floor.name}-{self.launch.instance_id}"

    @property
    def folder(self) -> Path:
        """What is mounted into it as /box/machine."""
        return self.floor.home / self.launch.instance_id

    def boot(self) -> None:
        """Make it and switch it on."""
        self._write()
        self._docker(
            "run",
            "--detach",
            *(f"--label={LABEL}={self.floor.name}", f"--name={self.container}", f"--hostname={self.launch.hostname}"),
            *(f"--network={self.floor.name}", f"--ip={self.launch.address}", *rights()),
            # As a machine's: what is in memory goes with it, what is on disk stays.
            *("--tmpfs=/run:exec", f"--volume={self.container}:/var/lib/docker"),
            *(f"--volume={self.folder}:/box/machine:ro", f"--volume={self.floor.efs}:/box/efs"),
            f"--device-cgroup-rule=b {MAJOR}:* rmw",
            self.floor.image,
        )

    def plug(self, devices: Mapping[str, int]) -> None:
        """Have it these further disks, now and when it boots again; nothing where it is no more."""
        with suppress(OSError):
            (self.folder / "devices.json").write_text(json.dumps(devices))
        with suppress(DockerFailed):
            self.run("python3", "-m", "tests.box.image.devices")

    def start(self) -> None:
        """Switch it on again, with the disk that it had."""
        self._docker("start", self.container)

    def stop(self) -> None:
        """Press its power button, again until it has been heard; nothing where it is off."""
        self.resume()
        with suppress(AssertionError):
            until(self._pressed, f"{self.container} has shut down", SHUTDOWN)
        self._docker("stop", "--time=0", self.container)

    def reboot(self) -> None:
        """Tell it to reboot: process 1 ends, and whoever watches starts it again."""
        self._docker("kill", "--signal=INT", self.container)

    def remove(self) -> None:
        """Cut its power and take away its disk; the console stays to be read. What has gone already is no failure."""
        self.resume()
        self.last_words = self.console()
        with suppress(DockerFailed):
            self._docker("rm", "--force", "--volumes", self.container)
        with suppress(DockerFailed):
            self._docker("volume", "rm", "--force", self.container)
        remove_cgroups(self.container)

    def hang(self) -> None:
        """Stop everything in it where it is, containers of its own engine too."""
        self._docker("pause", self.container)
        self._freeze("FROZEN")

    def resume(self) -> None:
        """Let it go on; nothing where it does not hang."""
        self._freeze("THAWED")
        with suppress(DockerFailed):
            self._docker("unpause", self.container)

    def run(self, *command: str) -> str:
        """What a command printed that root ran in it."""
        return self._docker("exec", self.container, *command)

    def ended(self) -> int | None:
        """The exit code of its process 1; None while it runs, and when it is no more."""
        running, code = self._state()
        return None if running else code

    def _state(self) -> tuple[bool, int | None]:
        """Whether it runs, and the exit code that it ended with last."""
        with suppress(DockerFailed):
            shown = self._docker("inspect", "--format", "{{.State.Running}} {{.State.ExitCode}}", self.container)
            running, _, code = shown.partition(" ")
            return running == "true", int(code)
        return False, None

    def _pressed(self) -> bool:
        running, _ = self._state()
        with suppress(DockerFailed):
            if running:
                self._docker("kill", "--signal=TERM", self.container)
        return not running

    def console(self) -> bytes:
        """The end of what it has written on its console."""
        command = ["docker", "-H", self.floor.outer, "logs", self.container]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, env=environment())
        return done.stdout[-CONSOLE:] if done.returncode == 0 else self.last_words

    def _write(self) -> None:
        """What its boot reads: cloud-init's seed, and what the box says of it."""
        launch, seed = self.launch, self.folder / "seed"
        seed.mkdir(parents=True)
        meta = {
            "instance-id": launch.instance_id,
            "local-hostname": launch.hostname,
            "public-keys": list(launch.public_keys),
        }
        (seed / "meta-data").write_text(json.dumps(meta))
        (seed / "user-data").write_bytes(launch.user_data)
        known = {"cgroup": self.container, "registry": self.floor.registry}
        (self.folder / "devices.json").write_text(json.dumps(dict(launch.devices)))
        (self.folder / "settings.json").write_text(json.dumps(known))

    def _freeze(self, state: str) -> None:
        with suppress(OSError):
            (FREEZER / self.container / "freezer.state").write_text(state)

    def _docker(self, *arguments: str) -> str:
        return docker(self.floor.outer, *arguments)
