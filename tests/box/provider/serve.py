"""Start the stand-in as the plugin that Pulumi asked for."""

import importlib.metadata
import sys

from pulumi.provider.experimental.server import main

from tests.box.provider.provider import StandIn

VERSION = importlib.metadata.version("pulumi-aws")

if __name__ == "__main__":
    main(sys.argv[1:], VERSION, StandIn())
