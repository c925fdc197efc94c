"""Adds the toy backends to the table of backends, in each Python process of a Pulumi program of the tests."""

from tfdeploy.spec.backends import BACKENDS, BackendEntry

BACKENDS["toy"] = BackendEntry("tests.toy_backend.backend")
BACKENDS["toy-nodes"] = BackendEntry("tests.toy_backend.nodes", configured_place=lambda settings: "")
