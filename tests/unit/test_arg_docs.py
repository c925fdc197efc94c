"""The documentation of the arguments agrees with the code: defaults, allowed values, reference, schema and `tfdeploy options`."""

import json
import re
from typing import Any

import pytest

from tests.unit.cases import spec
from tfdeploy.cli.commands.options import _rows
from tfdeploy.program.provider import Package, _python_name
from tfdeploy.spec.arg_docs import CLASSES, described
from tools.reference import reference

DEFAULTS = {
    "wait": '"10m"',
    "stop_grace_period": '"10s"',
    "backend": '"local"',
    "log_lines": "20",
    "restart.on": '["signal"]',
    "jobs.JOB.memory": "0",
    "container.network": '"overlay"',
    "container.subnet": "",
    "ec2.max_lifetime": '"72h"',
    "ec2.root_volume_size": '"100GiB"',
    "ec2.budget": "",
    "ec2.retain_record": "True",
}


def test_defaults_are_shown_as_users_write_them() -> None:
    shown = {row.name: row.default for row in _rows()}
    assert {name: shown[name] for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize("row", [row for row in _rows() if row.default], ids=lambda row: row.name)
def test_a_shown_default_changes_nothing_when_it_is_set(row: Any) -> None:
    value = json.loads({"True": "true", "False": "false"}.get(row.default, row.default))
    base: dict[str, Any] = {"ps": 1, "workers": 1, "backend": "ec2" if row.name.startswith("ec2.") else "docker"}
    service = {"command": ["redis-server"]}
    if row.name.startswith("services."):  # a group of the cluster may be for services too
        base["services"] = {"store": service}
    unset = spec(**base)
    arguments: Any = value
    for part in reversed(row.name.replace("JOB", "worker").replace("NAME", "store").split(".")):
        arguments = {part: arguments}
    if "services" in arguments:
        arguments = {"services": {"store": {**service, **arguments["services"]["store"]}}}
    if row.name not in ("ps", "workers", "backend"):
        assert spec(**{**base, **arguments}) == unset


def test_reference_and_schema_show_the_same_defaults() -> None:
    page, schema = " ".join(reference().split()), json.loads(Package().schema or "")
    (resource,) = schema["resources"].values()
    types = {name.rpartition(":")[2]: definition for name, definition in schema["types"].items()}
    types["TensorFlowClusterArgs"] = {"properties": resource["inputProperties"]}
    for prefix, (owner, _) in CLASSES.items():
        texts = {_python_name(name): item["description"] for name, item in types[owner]["properties"].items()}
        assert set(texts) == {row.name for row in described(prefix)}
        for row in described(prefix):
            assert texts[row.name].endswith(f"Default: `{row.default}`.") == bool(row.default), row.name
            default = f", default `{row.default}`" if row.default else ""
            own = rf" - `{row.name}` \(`[^`]*`{re.escape(default)}\): "
            assert re.search(rf"{own}|`{row.name}`(, `[a-z_]+`)*: As in", page), row.name
