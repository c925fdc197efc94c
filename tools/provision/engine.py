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

from tools.provision.steps import SetupError, locked, run

OLDEST = (3, 249, 0)
CLI = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
SDK = "github.com/pulumi/pulumi/sdk/v3"
HOST = "pulumi-language-python"
BUILT = "built from Go modules"
# What the language host starts, beside it: programs, and dynamic providers.
HOST_SCRIPTS = (f"python/cmd/{HOST}-exec", "python/dist/pulumi-resource-pulumi-python")
INSTALLER = "https://get.pulumi.com"
FETCH = ("curl", "-fsSL", "--connect-timeout", "10", "--max-time", "60", "-o")


@dataclass(frozen=True)
class Engine:
    folder: Path
    version: str
    origin: str


def cache_folder() -> Path:
    """What set-up keeps for all clones of the user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tfdeploy"


def ensure(root: Path) -> Engine:
    """Find the engine, or make it and keep it in the user's cache folder."""
    cache = cache_folder()
    modules = root / "tools" / "pulumi"
    version = _pinned_version(modules / "cli")
    kept = cache / f"pulumi-{version}"

    found = _on_path(cache)
    if found:
        return found
    if not (kept / "origin").exists():
        with locked(cache / "lock"):
            if not (kept / "origin").exists():
                _make(kept, version, modules)
    return Engine(kept / "bin", version, (kept / "origin").read_text().strip())


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
    answer = subprocess.run(
        [pulumi, "version"],
        env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip().removeprefix("v")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _make(kept: Path, version: str, modules: Path) -> None:
    """Fill a draft folder beside `kept`, then rename it: what is there is always whole."""
    with _draft(kept) as draft:
        refusal = _install(draft, version)
        if not refusal:
            origin = "by the official installer"
        elif go := shutil.which("go"):
            print(f"{refusal}; building pulumi {version} from its Go modules, once", flush=True)
            _build(draft / "bin", go, modules, version, kept.parent / "build.log")
            origin = BUILT
        else:
            raise SetupError(
                f"no Pulumi engine. There is none of 3.249 or newer on PATH; {refusal}; "
                "and there is no `go` on PATH to build it with.\n"
                "Install Pulumi, or Go 1.25 or newer, and run this again."
            )
        (draft / "origin").write_text(f"{origin}\n")
        if kept.exists():
            shutil.rmtree(kept)
        draft.rename(kept)


@contextmanager
def _draft(kept: Path) -> Iterator[Path]:
    """A folder to fill, gone afterwards unless renamed; those of killed set-ups go first."""
    for abandoned in kept.parent.glob("draft-*"):
        shutil.rmtree(abandoned)
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=kept.parent))
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
        return f"the official installer brought no {HOST}"
    return None


def _build(folder: Path, go: str, modules: Path, version: str, log: Path) -> None:
    cli, host = modules / "cli", modules / "language-host"
    # Each module stands alone, pinned by its own go.mod and go.sum, whatever surrounds it.
    env = {"CGO_ENABLED": "0", "GOWORK": "off"}
    build = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags"]
    flags = f"-s -w -X {SDK}/go/common/version.Version={version}"
    run("pulumi's CLI (minutes)", [*build, flags, "-o", folder / "pulumi", CLI], log, env, cli)
    package = f"{SDK}/python/cmd/{HOST}"
    run("pulumi's Python host", [*build, "-s -w", "-o", folder / HOST, package], log, env, host)
    source = subprocess.run(
        [go, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", SDK],
        env={**os.environ, **env},
        cwd=host,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    for script in HOST_SCRIPTS:
        copy = folder / Path(script).name
        shutil.copyfile(Path(source, script), copy)
        copy.chmod(0o755)
