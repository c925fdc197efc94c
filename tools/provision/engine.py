"""The Pulumi engine: from PATH, else by its official installer, else built from its Go modules."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.provision.steps import SetupError, locked, run

OLDEST = (3, 249, 0)
CLI = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
SDK = "github.com/pulumi/pulumi/sdk/v3"
HOST = "pulumi-language-python"
BUILT = "built from Go modules"

HOST_SOURCE = "python/python.go"
HOST_PATCH = (
    '\tprintmsg("Creating virtual environment...")\n',
    '\tif venvDir == "" {\n\t\treturn nil\n\t}\n\n\tprintmsg("Creating virtual environment...")\n',
)
"""What the built host's source has, and what it is replaced by: for a project without a virtual environment the present host creates
none, and this old one creates one in the folder of the project. `pulumi new` and `pulumi install` ask for it."""

# What the language host starts: programs, and dynamic providers. They are in its folder.
HOST_SCRIPTS = (f"python/cmd/{HOST}-exec", "python/dist/pulumi-resource-pulumi-python")
INSTALLER = "https://get.pulumi.com"
GO_ENV = {"CGO_ENABLED": "0", "GOWORK": "off"}
GO_BUILD = ("build", "-mod=readonly", "-trimpath", "-buildvcs=false")
FETCH = ("curl", "-fsSL", "--connect-timeout", "10", "--max-time", "60", "-o")


@dataclass(frozen=True)
class Engine:
    folder: Path
    version: str
    origin: str


def cache_folder() -> Path:
    """The folder with what set-up shares between all clones of the user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tfdeploy"


def ensure(root: Path) -> Engine:
    """Find the engine, or install it in the user's cache folder."""
    cache = cache_folder()
    modules = root / "tools" / "pulumi"
    version = _pinned_version(modules / "cli")
    target = cache / f"pulumi-{version}"

    existing = _on_path(cache)
    if existing:
        return existing
    if not (target / "origin").exists():
        with locked(cache / "lock"):
            if not (target / "origin").exists():
                _make(target, version, modules)
    origin = (target / "origin").read_text().strip()
    if origin == BUILT and not _is_host_current(target, modules):
        with locked(cache / "lock"):
            if not _is_host_current(target, modules):
                _build_host(target, modules, cache / "build.log")
    return Engine(target / "bin", version, origin)


def _pinned_version(cli_module: Path) -> str:
    requirements = cli_module / "go.mod"
    pinned = re.search(r"github\.com/pulumi/pulumi/pkg/v3 v(\S+)", requirements.read_text())
    if not pinned:
        raise SetupError(f"{requirements} does not name github.com/pulumi/pulumi/pkg/v3")
    return pinned[1]


def _on_path(cache: Path) -> Engine | None:
    """The user's own pulumi; what set-up made before does not count, also where it is activated."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    path = os.pathsep.join(f for f in folders if not Path(f).is_relative_to(cache))
    pulumi = shutil.which("pulumi", path=path)
    if not pulumi:
        return None
    version = _version(pulumi)
    if _numbers(version) < OLDEST:
        print(f"{pulumi} is {version or 'of no known version'}: older than 3.249, not used")
        return None
    beside = Path(pulumi).resolve().parent
    if not shutil.which(HOST, path=f"{beside}{os.pathsep}{path}"):
        print(f"{pulumi} has no {HOST} beside it or on PATH: not used")
        return None
    return Engine(Path(pulumi).parent, version, "from PATH")


def _version(pulumi: str) -> str:
    completed = subprocess.run(
        [pulumi, "version"],
        env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return completed.stdout.strip().removeprefix("v")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _make(target: Path, version: str, modules: Path) -> None:
    """Fill a draft folder beside `target`, then rename it: what exists is always complete."""
    with _draft(target) as draft:
        refusal = _install(draft, version)
        if not refusal:
            origin = "by the official installer"
        elif go := shutil.which("go"):
            print(f"{refusal}; building pulumi {version} from its Go modules, once", flush=True)
            _build(draft / "bin", go, modules, version, target.parent / "build.log")
            origin = BUILT
        else:
            raise SetupError(
                f"no Pulumi engine: version 3.249 or newer is not on PATH; {refusal}; "
                "and `go` is not on PATH to build it.\n"
                "Install Pulumi, or Go 1.25 or newer, and run this again."
            )
        (draft / "origin").write_text(f"{origin}\n")
        if target.exists():
            shutil.rmtree(target)
        draft.rename(target)


@contextmanager
def _draft(target: Path) -> Iterator[Path]:
    """A folder to fill, removed afterwards unless renamed; those of killed set-ups are removed first."""
    for abandoned in target.parent.glob("draft-*"):
        shutil.rmtree(abandoned)
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=target.parent))
    draft.chmod(0o755)
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _install(draft: Path, version: str) -> str | None:
    """Install into `draft` by Pulumi's own script; None, or why it could not be done."""
    script = draft / "install.sh"
    try:
        fetched = subprocess.run([*FETCH, script, INSTALLER], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "the official installer needs `curl`, which is not on PATH"
    if fetched.returncode != 0:
        return f"the official installer cannot be fetched ({fetched.stderr.strip()})"
    options = ("--version", version, "--install-root", str(draft), "--no-edit-path")
    try:
        run(f"pulumi {version}", ["sh", script, *options], draft.parent / "install.log", cwd=draft)
    except SetupError as error:
        return f"the official installer failed ({error})"
    if not (draft / "bin" / HOST).exists():
        return f"the official installer did not install {HOST}"
    return None


def _build(folder: Path, go: str, modules: Path, version: str, log: Path) -> None:
    # Each module is independent, pinned by its own go.mod and go.sum, whatever surrounds it.
    flags = f"-s -w -X {SDK}/go/common/version.Version={version}"
    command = [go, *GO_BUILD, "-ldflags", flags, "-o", str(folder / "pulumi"), CLI]
    run("pulumi's CLI (minutes)", command, log, GO_ENV, modules / "cli")


def _is_host_current(target: Path, modules: Path) -> bool:
    """Whether the built language host is of these sources."""
    stamp = target / HOST
    return stamp.exists() and stamp.read_text().strip() == _host_content(modules)


def _host_content(modules: Path) -> str:
    files = b"".join((modules / "language-host" / name).read_bytes() for name in ("go.mod", "go.sum"))
    return hashlib.sha256(files + HOST_PATCH[1].encode()).hexdigest()


def _build_host(target: Path, modules: Path, log: Path) -> None:
    """Build the language host, with its patch and its scripts, beside pulumi; what is on PATH is always complete.

    Raises:
        SetupError: there is no Go, or the build failed.
    """
    go = shutil.which("go")
    if not go:
        raise SetupError(f"`go` is not on PATH to build {HOST} with")
    folder = modules / "language-host"
    listing = [go, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", SDK]
    subprocess.run([go, "mod", "download", SDK], env={**os.environ, **GO_ENV}, cwd=folder, check=True)
    source = Path(
        subprocess.run(
            listing, env={**os.environ, **GO_ENV}, cwd=folder, capture_output=True, text=True, check=True
        ).stdout.strip()
    )
    draft = target / f"{HOST}.draft"
    with tempfile.TemporaryDirectory() as temporary:
        module = _patched_module(folder, source, Path(temporary))
        package = f"{SDK}/python/cmd/{HOST}"
        command = [go, *GO_BUILD, f"-modfile={module}", "-ldflags", "-s -w", "-o", str(draft), package]
        run("pulumi's Python host", command, log, GO_ENV, folder)
    for script in HOST_SCRIPTS:
        copy = target / "bin" / Path(script).name
        shutil.copyfile(source / script, copy.with_suffix(".draft"))
        copy.with_suffix(".draft").chmod(0o755)
        copy.with_suffix(".draft").rename(copy)
    draft.rename(target / "bin" / HOST)
    (target / HOST).write_text(f"{_host_content(modules)}\n")


def _patched_module(folder: Path, source: Path, temporary: Path) -> Path:
    """The go.mod of the language host, with a patched copy of the SDK in the place of the one in the cache of modules."""
    copy = temporary / "sdk"
    shutil.copytree(source, copy, copy_function=shutil.copyfile)
    for directory in (copy, *(path for path in copy.rglob("*") if path.is_dir())):
        directory.chmod(0o755)
    patched = copy / HOST_SOURCE
    patched.write_text(patched.read_text().replace(*HOST_PATCH))
    module = temporary / "go.mod"
    module.write_text(f"{(folder / 'go.mod').read_text()}\nreplace {SDK} => {copy}\n")
    shutil.copyfile(folder / "go.sum", temporary / "go.sum")
    return module
