"""The Pulumi engine: from PATH, else by its official installer, else built from its Go modules."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.provision import go_programs
from tools.provision.language_host import HOST, HOST_PATCH, SDK
from tools.provision.steps import SetupError, locked, report, run

OLDEST = (3, 249, 0)
CLI = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
BUILT = "built from Go modules"

INSTALLER = "https://get.pulumi.com"
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
    if origin == BUILT:
        host = {HOST: f"{SDK}/python/cmd/{HOST}"}
        go_programs.ensure(target, go_programs.Module(modules / "language-host", host, patch=HOST_PATCH))
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
        report(f"{pulumi} is {version or 'of no known version'}: older than 3.249, not used")
        return None
    real = Path(pulumi).resolve().parent
    if not shutil.which(HOST, path=f"{real}{os.pathsep}{path}"):
        report(f"{pulumi} has no {HOST} beside it or on PATH: not used")
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
        elif shutil.which("go"):
            report(f"{refusal}; building pulumi {version} from its Go modules, once")
            flags = f"-s -w -X {SDK}/go/common/version.Version={version}"
            go_programs.build(draft, go_programs.Module(modules / "cli", {"pulumi": CLI}, flags=flags))
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
