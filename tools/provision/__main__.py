"""The larger half of tools/setup, run by the virtual environment's Python: `python -m tools.provision STEP…`.

Each step installs what it needs and what earlier steps have installed; a finished step takes a moment.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tools.provision import engine, kubernetes, languages, packages, plugins
from tools.provision.engine import Engine
from tools.provision.steps import SetupError, report, side_by_side

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"


@dataclass(frozen=True)
class Step:
    """Extras of pyproject.toml, and what is needed that pip does not install."""

    extras: Sequence[str]
    programs: Mapping[str, Callable[[Engine], str]]
    uses_pulumi: bool = True


STEPS = {
    "local": Step(["local"], {"tfdeploy for other languages": plugins.provide_tfdeploy}),
    "docker": Step(["docker"], {"docker provider": lambda pulumi: plugins.provide_docker(ROOT, pulumi)}),
    "ec2": Step(
        ["ec2"],
        {"docker provider": lambda pulumi: plugins.provide_docker(ROOT, pulumi), "AWS provider": plugins.provide_aws},
    ),
    "languages": Step([], {"languages other than Python": lambda pulumi: languages.provide(ROOT, pulumi)}),
    # The tests have an emulation of the AWS provider.
    "kubernetes": Step(["kubernetes"], {}),
    "tests": Step(
        ["dev", "docker", "ec2", "kubernetes", "local"],
        {"Kubernetes for the tests": lambda pulumi: kubernetes.provide(ROOT, pulumi)},
    ),
    # The types of Pulumi's docker provider are checked too.
    "check": Step(["dev", "docker"], {}, uses_pulumi=False),
}


def main() -> int:
    names = sys.argv[1:] or ["local"]
    try:
        steps = [STEPS[name] for name in names]
    except KeyError as unknown:
        print(f"tools/setup: there is no step {unknown}; there are {', '.join(STEPS)}", file=sys.stderr)
        return 2
    try:
        _set_up(steps)
    except SetupError as error:
        print(f"tools/setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("tools/setup: interrupted; run it again to continue", file=sys.stderr)
        return 130
    return 0


def _set_up(steps: Sequence[Step]) -> None:
    extras = {extra for step in steps for extra in step.extras}
    engines: list[Engine] = []
    work: list[Callable[[], object]] = [partial(packages.install, ROOT, VENV, extras)]
    if any(step.uses_pulumi for step in steps):
        work.append(lambda: engines.append(engine.ensure(ROOT)))
    side_by_side(*work)
    if not engines:
        return
    (pulumi,) = engines
    (VENV / "pulumi-bin").write_text(f"{pulumi.folder}\n")  # tools/activate reads it
    report(f"pulumi {pulumi.version}: {pulumi.origin} ({pulumi.folder})")
    programs = {what: provide for step in steps for what, provide in step.programs.items()}
    side_by_side(*(partial(_provide, what, provide, pulumi) for what, provide in programs.items()))


def _provide(what: str, provide: Callable[[Engine], str], pulumi: Engine) -> None:
    report(f"{what}: {provide(pulumi)}")


if __name__ == "__main__":
    sys.exit(main())
