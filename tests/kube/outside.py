"""`python -m tests.kube.outside`: what a kubelet, containerd and CNI change on a computer that is theirs, as JSON."""

import json
import socket
import subprocess
from pathlib import Path

KERNEL = ("kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "net/ipv4/ip_forward")


def outside() -> dict[str, object]:
    """Network links, mounts, firewall rules, settings of the kernel, and folders."""
    rules = subprocess.run(["iptables-save"], capture_output=True, text=True, check=False).stdout.splitlines()
    return {
        "links": sorted(name for _, name in socket.if_nameindex()),
        "mounts": sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        "rules": [line for line in rules if not line.startswith(("#", ":"))],
        "kernel": [Path("/proc/sys", setting).read_text() for setting in KERNEL],
        "folders": [Path(path).exists() for path in ("/var/lib/cni", "/var/lib/kubelet", "/run/netns")],
    }


if __name__ == "__main__":
    print(json.dumps(outside()))
