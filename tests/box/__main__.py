"""`python -m tests.box`: EC2 in a box, until Ctrl-C; what is printed leads a shell's AWS programs, and Pulumi, there.

With `--tensorflow` the machines find an image with TensorFlow; `BOX_IMAGE` names it.
"""

import argparse
import shlex
import signal

from tests.box.cloud import COMMANDS, PLUGINS, Box
from tests.engine.daemon import engine
from tests.engine.images import tensorflow_image

SAYS = """\
# EC2 in a box. EC2's API is moto's. Each instance is a container with a Docker engine of its own, which boots: its
# real user data is run by cloud-init, its sshd takes the key pair's key, its address is that of the instance.
# EFS is a folder that is bind-mounted; a container answers as the metadata service; `aws` only starts ssh's sessions.
# Not proven here: security groups and other rules of a network (everything reaches everything), rights (any
# credentials may do anything), GPUs, and AWS itself: it is never asked.
# Ctrl-C ends all of it.
"""


def main() -> None:
    """Run a box and say how to use it."""
    parser = argparse.ArgumentParser(prog="python -m tests.box", description="EC2 in a box, until Ctrl-C.")
    parser.add_argument("--tensorflow", action="store_true", help="have an image with TensorFlow for the machines")
    asked = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with engine() as outer, Box(outer) as box:
        settings = box.pulumi_environment
        del settings["PATH"]
        if asked.tensorflow:
            print("# TensorFlow's image is brought into the box: a minute or two.", flush=True)
            settings["BOX_IMAGE"] = box.push(tensorflow_image(outer))
        for name, value in settings.items():
            print(f"export {name}={shlex.quote(value)}")
        print(f"export PATH={shlex.quote(f'{PLUGINS}:{COMMANDS}')}:$PATH")
        print(f"# Machines pull images from {box.registry}.\n{SAYS}", end="", flush=True)
        signal.pause()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("# Ended: nothing is left.")
