"""The component as a Pulumi package; schema.json is what other languages know of it."""

from tfdeploy.provider import run

run()
