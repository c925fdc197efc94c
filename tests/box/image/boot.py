"""What systemd starts at boot, in its order; all of cloud-init's output goes to the console."""

import subprocess
import sys

from tests.box.image import units


def main() -> None:
    """Mount, start services, run the stages of cloud-init: the engine comes after the network is online, ecs last."""
    run("mount", "--all")
    run("cloud-init", "init", "--local")
    run("cloud-init", "init")
    early, late = units.started_at_boot()
    for name in early:
        run("systemctl", "start", name)
    engine = [
        subprocess.Popen(["systemctl", "start", name]) for name in ("docker", "docker.socket") if units.enabled(name)
    ]
    if units.enabled("sshd"):
        run("systemctl", "start", "sshd")
    run("cloud-init", "modules", "--mode=config")
    for process in engine:
        process.wait()
    for name in late:
        run("systemctl", "start", name)
    run("cloud-init", "modules", "--mode=final")
    if units.enabled("ecs"):
        run("systemctl", "start", "ecs")


def run(*command: str) -> None:
    """Run one step; boot goes on when it fails, and the console says so."""
    code = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    if code != 0:
        print(f"[FAILED] {' '.join(command)}: exit code {code}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
