"""The engine that the tests have: that it is what they take it for, and that one of their own leaves no trace."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.engine import daemon
from tests.engine.images import ROOT

pytestmark = pytest.mark.full


KILLED_ENGINE = """
import os, signal, socket, subprocess, sys
from pathlib import Path
from tests.engine import daemon
from tests.engine.cli import cache, docker
from tests.waiting import until

def ip(*words):
    subprocess.run(["ip", "link", *words], check=True)

def links():
    return {name for _, name in socket.if_nameindex()}

def container(address, number):
    # Each new Swarm gives the same number to its first network.
    network = docker(address, "network", "create", "--driver", "overlay", "--attachable", f"overlay-{number}")
    docker(address, "network", "create", f"bridge-{number}")
    docker(address, "run", "--detach", "--network", f"overlay-{number}", "tests:sleep", "/bin/sleep", "1d")
    docker(address, "run", "--detach", "--network", f"bridge-{number}", "tests:sleep", "/bin/sleep", "1d")
    docker(address, "run", "--detach", "--network", "host", "tests:sleep", "/bin/sleep", "1d")
    return network

def sleeping():
    # Other processes may end while this looks.
    found = set()
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                if (path / "cmdline").read_bytes().startswith(b"/bin/sleep"):
                    found.add(path.name)
            except OSError:
                pass
    return found

ip("add", "br-0123456789ab", "type", "bridge")
ip("add", "vx-001001-other", "type", "bridge")
ip("add", "veth-other", "type", "veth", "peer", "name", "veth-other-end")
ip("set", "veth-other", "master", "br-0123456789ab")
others = links()

child = os.fork()
if not child:
    with daemon.engine() as address:
        docker(address, "import", sys.argv[1], "tests:sleep")
        # An engine creates these here and moves them into the namespace of the network.
        ip("add", f"vx-001001-{container(address, 1)[:5]}", "type", "bridge")
        home = Path(address.removeprefix("unix://")).parent
        (cache() / "home").write_text(str(home))
        # Docker reports a container as started just before its process executes the program.
        until(lambda: len(sleeping()) == 3, "three containers sleep", seen=sleeping)
        os.kill(int((home / "docker.pid").read_text()), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)
killed = Path((cache() / "home").read_text())
stale = {name for name in links() - others if name.startswith(("br-", "vx-"))}
assert len(stale) == 2 and len(sleeping()) == 3, (links(), sleeping())
until(lambda: not daemon._in_use(cache() / "docker"), "the engine has ended")

# The next engine has another data folder, as in the clone of another user.
os.environ["XDG_CACHE_HOME"] += "-next"
with daemon.engine() as address:
    docker(address, "import", sys.argv[1], "tests:sleep")
    assert not stale & links(), links()
    assert others <= links(), "devices of another engine"
    assert not sleeping()
    assert not killed.exists()
    container(address, 2)
assert others <= links(), links()

def left():
    return {name for name in links() - others if name.startswith(("br-", "veth", "vx-"))}

# The kernel removes the devices of a namespace after its last process has ended.
until(lambda: not left(), "no devices are left", seen=left)
"""

PRIVATE = "mount --make-rprivate / && mount -t tmpfs tmpfs /run && ip link set lo up && exec"


def test_an_engine_that_was_killed_does_not_disturb_the_next_one(engine: str, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can start an engine")
    done = in_private(KILLED_ENGINE, tmp_path, str(image_with_sleep(tmp_path)))
    assert done.returncode == 0, done.stdout


def in_private(program: str, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The end of a program that has no other engine, a network of its own, and processes that end with it."""
    kept = {name: value for name, value in os.environ.items() if name != "DOCKER_HOST"}
    script = f'{PRIVATE} "$0" -c "$@"'
    alone = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script)
    return subprocess.run(
        [*alone, sys.executable, program, *arguments],
        cwd=ROOT,
        env={**kept, "XDG_CACHE_HOME": str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def image_with_sleep(folder: Path) -> Path:
    """A tar of an image that has this machine's `sleep`."""
    program = os.path.realpath(shutil.which("sleep") or "")
    needed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    tar = folder / "sleep.tar"
    with tarfile.open(tar, "w") as image:
        image.add(program, "bin/sleep")
        for library in re.findall(r"/\S+", needed):
            image.add(os.path.realpath(library), library.lstrip("/"))
    return tar


def test_the_data_of_another_engine_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data = tmp_path / "tfdeploy/engine/docker"
    networks = data / "network/files/local-kv.db"
    for path in (networks, data / "volumes/metadata.db"):
        path.parent.mkdir(parents=True)
        path.touch()
    with (data / "volumes/metadata.db").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(daemon.NoEngine, match="another Docker engine uses"), daemon.daemon():
            pass
    assert networks.exists()
