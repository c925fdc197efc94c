"""What systemd starts at boot, in its order; all of cloud-init's output goes to the console."""

import subprocess
import sys

from tests.box.image import units


def main() -> None:
    """Mount, start services, run the stages of cloud-init."""
    run("mount", "--all")
    early = [subprocess.Popen(["systemctl", "start", name]) for name in ("docker", "ecs") if units.enabled(name)]
    run("cloud-init", "init", "--local")
    run("cloud-init", "init")
    if units.enabled("sshd"):
        run("systemctl", "start", "sshd")
    run("cloud-init", "modules", "--mode=config")
    for process in early:
        process.wait()
    run("cloud-init", "modules", "--mode=final")


def run(*command: str) -> None:
    """Run one step; boot goes on when it fails, and the console says so."""
    code = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    if code != 0:
        print(f"[FAILED] {' '.join(command)}: exit code {code}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
