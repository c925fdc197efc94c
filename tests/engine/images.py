"""Images for the tests, made of Debian's packages and of PyPI's: nothing comes from an image registry."""

import fcntl
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.engine.cli import LABEL, DockerFailed, cache, digest, docker

ROOT = Path(__file__).parent.parent.parent
NAME = "tfdeploy-test"
PYTHON = f"{NAME}/slim:python"
USER = f"{NAME}/slim:user"
MACHINE = f"{NAME}/machine:nested"

SUITE = "bookworm"
"""Debian 12: tasks need the Python of the tests' environment, whose packages they mount."""

MACHINE_SUITE = "trixie"
"""Debian 13: machines have a newer engine than this one."""

PACKAGES = ("ca-certificates", "python3", "python-is-python3")
MACHINE_PACKAGES = ("docker.io", "docker-cli", "e2fsprogs", "iproute2", "iptables", "openssh-server", "pigz")
NOT_NEEDED = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man")
SLIM = Path(__file__).parent / "slim.py"
UV = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
# What runs in the image, whatever runs the tests.
VERSION = (3, 11)
IN_IMAGE = {
    "python_full_version": "3.11.2",
    "python_version": "3.11",
    "sys_platform": "linux",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
}
FOR_IMAGE = ["--python-version=3.11", "--python-platform=x86_64-manylinux_2_28"]
SITE = "/usr/local/lib/python3.11/dist-packages"


def debian_image(address: str, suite: str = SUITE) -> str:
    """Debian with its Python, as `python` and `python3`: what the other images are made of."""
    recipe, name = debian_recipe(suite), f"{NAME}/debian:{suite}"
    with missing(address, name, recipe) as is_missing:
        if is_missing:
            docker(address, "import", "--change", f"LABEL {LABEL}={recipe}", debian_tar(suite), name)
    return name


def debian_recipe(suite: str = SUITE) -> str:
    """What identifies the content of that image."""
    return digest(suite, *PACKAGES, *NOT_NEEDED)


def debian_tar(suite: str = SUITE) -> Path:
    """The files of that image, in the cache."""
    tar = cache() / f"debian-{debian_recipe(suite)}.tar"
    if not tar.exists():
        _bootstrap(suite, tar)
    return tar


def python_image(address: str) -> str:
    """Python and a few programs, as small as can be, because many machines pull it; root is its user."""
    steps = [
        f"FROM {debian_image(address)} AS whole",
        f"COPY {SLIM.name} /",
        f"RUN python3 /{SLIM.name} /slim",
        "FROM scratch",
        "COPY --from=whole /slim /",
        'CMD ["python3"]',
    ]

    def fill(context: Path) -> None:
        shutil.copy(SLIM, context)

    return build(address, PYTHON, "\n".join(steps), fill, SLIM.read_text())


def user_image(address: str) -> str:
    """The image with Python, for a user who is not root and has no home folder."""
    return build(address, USER, f"FROM {python_image(address)}\nUSER 1000\n")


def machine_image(address: str) -> str:
    """A machine in a container: an engine of its own, and ssh."""
    get = "apt-get -q update && apt-get -q -y --no-install-recommends install"
    install = (
        f"RUN {get} {' '.join(MACHINE_PACKAGES)} && rm -rf /var/lib/apt/lists /var/cache/apt /etc/ssh/ssh_host_*\n"
    )
    return build(address, MACHINE, f"FROM {debian_image(address, MACHINE_SUITE)}\n{install}")


def tensorflow_packages() -> Path:
    """A folder to be mounted at `SITE`: the packages of the environment of the tests where they fit the image's Python, else others.

    No image with TensorFlow is needed then, which is slow to make.
    """
    if sys.version_info[:2] == VERSION and platform.machine() == IN_IMAGE["platform_machine"]:
        return Path(sysconfig.get_path("purelib"))
    pins = _pins("tensorflow-cpu", "tensorboard")
    folder = cache() / f"tensorflow-{digest(*pins)}"
    with (cache() / "tensorflow.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache()) as draft:
                subprocess.run([*UV, *FOR_IMAGE, "--target", f"{draft}/packages", *pins], check=True)
                Path(draft, "packages").rename(folder)
    return folder


def tensorflow_image(address: str) -> str:
    """Python and the TensorFlow that requirements.lock names, with TensorBoard."""
    pins = _pins("tensorflow-cpu", "tensorboard")
    # An import compiles the modules that programs use, which are a fifth of all.
    dockerfile = f"FROM {python_image(address)}\nCOPY packages {SITE}\nRUN python3 -c 'import tensorflow'\n"

    def fill(context: Path) -> None:
        subprocess.run([*UV, *FOR_IMAGE, "--target", f"{context}/packages", *pins], check=True)

    return build(address, f"{NAME}/tensorflow-cpu:{pins[0].partition('==')[2]}", dockerfile, fill, " ".join(pins))


def build(
    address: str, tag: str, dockerfile: str, fill: Callable[[Path], None] = lambda context: None, more: str = ""
) -> str:
    """Build an image of this name, unless there is one of the same content; `fill` puts files beside the Dockerfile."""
    base = docker(address, "image", "inspect", "--format", "{{.Id}}", dockerfile.split()[1])
    recipe = digest(dockerfile, base, more)
    with missing(address, tag, recipe) as is_missing:
        if is_missing:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "Dockerfile").write_text(dockerfile)
                fill(Path(folder))
                docker(address, "build", "--quiet", "--label", f"{LABEL}={recipe}", "--tag", tag, folder)
    return tag


@contextmanager
def missing(address: str, tag: str, recipe: str) -> Iterator[bool]:
    """Whether an image must be made. If so, no other process makes it meanwhile: those that want it wait."""
    if there(address, tag, recipe):
        yield False
        return
    with (cache() / f"{tag.replace('/', '-').replace(':', '-')}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not there(address, tag, recipe)


def there(address: str, tag: str, recipe: str) -> bool:
    """Whether the engine has this image, made by this recipe."""
    try:
        return docker(address, "image", "inspect", "--format", f'{{{{index .Config.Labels "{LABEL}"}}}}', tag) == recipe
    except DockerFailed:
        return False


def _bootstrap(suite: str, tar: Path) -> None:
    """A tar of a small Debian; what is in the cache is always whole."""
    with tempfile.TemporaryDirectory(dir=tar.parent) as folder:
        system = Path(folder, "system")
        command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, str(system)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise DockerFailed(f"debootstrap ended with exit code {done.returncode}:\n{done.stdout[-2000:]}")
        for part in NOT_NEEDED:
            shutil.rmtree(system / part, ignore_errors=True)
        draft = Path(folder, "draft.tar")
        subprocess.run(["tar", "--numeric-owner", "-C", system, "-cf", draft, "."], check=True)
        draft.rename(tar)


def _pins(*packages: str) -> list[str]:
    """The packages and all that it needs, in the versions that requirements.lock has for the image."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    locked = [Requirement(line.rstrip(" \\")) for line in lines if "==" in line and line[0].isalnum()]
    pins = {pin.name: f"{pin.name}{pin.specifier}" for pin in locked if _holds(pin)}
    wanted = list(packages)
    for name in wanted:
        needs = [canonicalize_name(need.name) for need in map(Requirement, requires(name) or []) if _holds(need)]
        wanted += [need for need in needs if need not in wanted]
    return [pins[name] for name in wanted]


def _holds(requirement: Requirement) -> bool:
    return not requirement.marker or requirement.marker.evaluate({**IN_IMAGE, "extra": ""})
