"""Start the stand-in as the plugin that Pulumi asked for."""

import importlib.metadata
import sys

from pulumi.provider.experimental.server import main

from tests.box.provider.provider import StandIn
from tfdeploy.program.plugin_exit import follow_engine

VERSION = importlib.metadata.version("pulumi-aws")

if __name__ == "__main__":
    follow_engine()
    main(sys.argv[1:], VERSION, StandIn())
