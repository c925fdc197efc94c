"""The larger half of tools/setup, run by the virtual environment's own Python.

With the argument `docker`: what only the docker backend needs on top of that; with `languages`: what programs in other languages need.
"""

import sys
from pathlib import Path

from tools.provision import docker_provider, engine, languages, packages
from tools.provision.steps import SetupError

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"


def main() -> int:
    try:
        if sys.argv[1:] == ["docker"]:
            print(f"docker provider: {docker_provider.provide(ROOT, engine.ensure(ROOT))}")
            return 0
        if sys.argv[1:] == ["languages"]:
            print(f"languages other than Python: {languages.provide(ROOT, engine.ensure(ROOT))}")
            return 0
        packages.install(ROOT, VENV)
        found = engine.ensure(ROOT)
    except SetupError as error:
        print(f"tools/setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("tools/setup: interrupted; run it again to go on", file=sys.stderr)
        return 130
    (VENV / "pulumi-bin").write_text(f"{found.folder}\n")  # tools/activate reads it
    print(f"pulumi {found.version}: {found.origin} ({found.folder})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
