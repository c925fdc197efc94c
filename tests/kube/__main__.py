"""`python -m tests.kube`: a Kubernetes until Ctrl-C; what is printed leads a shell's programs there."""

import argparse
import shlex
import signal

from tests.kube.cluster import cluster
from tests.kube.images import archive
from tests.kube.programs import kube


def main() -> None:
    """Run a cluster and print how to use it."""
    parser = argparse.ArgumentParser(prog="python -m tests.kube", description="A Kubernetes, until Ctrl-C.")
    parser.add_argument("--nodes", type=int, default=2)
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with cluster(kube(), archive(), options.nodes) as made:
        print(f"export KUBECONFIG={shlex.quote(str(made.kubeconfig))}")
        print(f"# Its logs are in {made.folder}. Ctrl-C ends it.", flush=True)
        signal.pause()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("# Ended: nothing is left.")
