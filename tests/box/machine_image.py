"""The image of a box's machines: what Amazon's ECS-optimized Linux has, as far as a container can have it."""

import shutil
from pathlib import Path

from tests.engine.images import NAME, build, machine_image

SOURCES = Path(__file__).parent / "image"
# In addition to those of the nested machines.
PACKAGES = ("cloud-init", "curl", "libnss-myhostname", "procps", "sudo")
LIBRARY = "/usr/lib/box"
# Where a program is found: its module, and what it is given before its arguments.
PROGRAMS = {
    "/usr/bin/systemctl": "systemctl",
    "/usr/sbin/shutdown": "shutdown shutdown",
    "/usr/sbin/poweroff": "shutdown poweroff",
    "/usr/sbin/halt": "shutdown halt",
    "/usr/sbin/reboot": "shutdown reboot",
    "/usr/sbin/mount.efs": "mount_efs",
    "/usr/lib/box/bin/init": "init",
}


def image(address: str) -> str:
    """The image, on the engine at this address."""
    content = "".join(path.read_text() for path in sorted(SOURCES.iterdir()) if path.is_file())
    return build(address, f"{NAME}/machine:ec2", _dockerfile(machine_image(address)), _fill, content + str(PROGRAMS))


def _dockerfile(base: str) -> str:
    get = "apt-get -q update && apt-get -q -y --no-install-recommends install"
    seed = "/var/lib/cloud/seed"
    return f"""FROM {base}
RUN {get} {" ".join(PACKAGES)} && rm -rf /var/lib/apt/lists /var/cache/apt /etc/ssh/ssh_host_*
COPY programs /
COPY image {LIBRARY}/tests/box/image
RUN echo {LIBRARY} >/usr/lib/python3/dist-packages/box.pth && \\
    mv {LIBRARY}/tests/box/image/cloud.cfg /etc/cloud/cloud.cfg && \\
    mkdir -p {seed} && ln -s /box/machine/seed {seed}/nocloud
CMD ["{LIBRARY}/bin/init"]
"""


def _fill(context: Path) -> None:
    shutil.copytree(SOURCES, context / "image", ignore=shutil.ignore_patterns("__pycache__"))
    for place, module in PROGRAMS.items():
        program = context / "programs" / place.lstrip("/")
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec python3 -m tests.box.image.{module} "$@"\n')
        program.chmod(0o755)
