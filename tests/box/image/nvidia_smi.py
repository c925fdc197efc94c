"""Stands in for nvidia-smi: lists the GPUs that the instance type has."""

import sys
import uuid

from tests.box.image.units import settings


def main(arguments: list[str]) -> int:
    """List them; the exit code is that of nvidia-smi."""
    if arguments not in (["-L"], ["--list-gpus"]):
        print("The box knows only `nvidia-smi --list-gpus`.", file=sys.stderr)
        return 2
    known = settings()
    names = [gpu["Name"] for gpu in known["gpus"] for _ in range(gpu["Count"])]
    for number, name in enumerate(names):
        print(f"GPU {number}: {name} (UUID: GPU-{uuid.uuid5(uuid.NAMESPACE_OID, known['cgroup'] + str(number))})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
