"""Pulumi downloads no plugin in the environment of tools/activate, whatever packages called pulumi-… are installed in it."""

from pathlib import Path

import pytest

from tests.setup.clones import ROOT, Clone, clean_environment
from tests.setup.plugin_server import plugin_server

PROGRAM = """\
from tfdeploy import TensorFlowCluster

TensorFlowCluster("test", command=["true"], workers=1)
"""


@pytest.mark.parametrize(
    ("given", "asks"),
    [({}, False), ({"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "false"}, True)],
    ids=["off", "on"],
)
def test_a_plugin_server_is_asked_only_where_the_user_switches_acquisition_on(
    given: dict[str, str], asks: bool, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.mkdir()
    (program / "Pulumi.yaml").write_text("name: acquisition\nruntime: python\n")
    (program / "__main__.py").write_text(PROGRAM)
    with plugin_server() as server:
        user = Clone(ROOT, {**clean_environment(tmp_path / "home"), **server.env, **given})
        done = user.bash("pulumi stack init test && pulumi preview --non-interactive", program)
    # The package pulumi-aws is installed for the tests; a cluster on `local` does not use it.
    assert any(name.startswith("pulumi-resource-aws-v") for name in server.asked) == asks
    if not asks:
        assert server.asked == []
    assert done.exit_code == 0, done.output
    assert "tfdeploy:index:TensorFlowCluster" in done.output
