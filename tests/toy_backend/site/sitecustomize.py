"""Adds the toy backend to the table of backends, in each Python process of a Pulumi program of the tests."""

from tfdeploy.spec.backends import BACKENDS, BackendEntry

BACKENDS["toy"] = BackendEntry("tests.toy_backend.backend", configured_place=lambda settings: "")
