"""Fixtures that several shelves share."""

pytest_plugins = ["tests.engine.fixtures", "tests.box.fixtures"]
