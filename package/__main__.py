"""The component as a Pulumi package; schema.json is what other languages know of it."""

from tfdeploy.program.provider import run

run()
