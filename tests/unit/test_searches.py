"""What carries our marks becomes clusters, whatever it is."""

from pathlib import Path

import pytest

from tfdeploy.backends.docker import search as docker
from tfdeploy.backends.ec2 import search as ec2
from tfdeploy.backends.local import search as local
from tfdeploy.cli.settings import places, settings
from tfdeploy.ec2.prices import Amount
from tfdeploy.ec2.tagged import Thing


def labels(name: str) -> dict[str, str]:
    return {"tfdeploy.project": "p", "tfdeploy.stack": "dev", "tfdeploy.cluster": name, "com.docker.stack": "x"}


def test_things_of_an_engine_are_told_by_cluster() -> None:
    found = docker.grouped(
        "unix:///d.sock",
        [("service", labels("b"), 20.0), ("image", labels("a"), 0.0), ("service", labels("b"), 10.0)],
    )
    assert [(one.cluster["name"], one.has, one.since) for one in found] == [
        ("a", {"image": 1}, 0.0),
        ("b", {"service": 2}, 10.0),
    ]
    assert found[0].cluster == {
        "backend": "docker",
        "project": "p",
        "stack": "dev",
        "name": "a",
        "home": "unix:///d.sock",
    }
    assert docker.moment("2026-11-21T14:05:11.123456789Z") == 1795269911.0
    assert docker.moment(None) == 0.0


def test_things_of_a_region_have_a_price_and_a_kept_record_is_none_of_them() -> None:
    machine = Thing("instance", "p", "dev", "a", 5.0, Amount(0.1))
    disk = Thing("volume", "p", "dev", "a", 4.0, Amount(0.02))
    record = Thing("bucket", "p", "dev", "old", 1.0, kept=True)
    (found,) = ec2.grouped("us-east-1", [machine, disk, record])
    assert (found.has, found.since, found.per_hour) == ({"instance": 1, "volume": 1}, 4.0, 0.12)
    assert found.cluster["home"] == "ec2://us-east-1/p/dev/a"
    (found,) = ec2.grouped("us-east-1", [machine, Thing("volume", "p", "dev", "a", 4.0, Amount(unknown=("x",)))])
    assert found.per_hour is None


def test_a_folder_tells_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert local.cluster_of("/s/clusters/my.project.dev.mnist") == {
        "backend": "local",
        "project": "my.project",
        "stack": "dev",
        "name": "mnist",
        "home": "/s/clusters/my.project.dev.mnist",
    }
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    home = tmp_path / "tfdeploy/clusters/p.dev.mnist"
    home.mkdir(parents=True)
    (found,) = [one for one in local.found() if one.cluster["home"] == str(home)]
    assert (found.has, found.since > 0) == ({"folder": 1}, True)


def test_settings_say_where_to_look(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.yaml"
    (tmp_path / "Pulumi.dev.yaml").write_text(
        'config:\n  aws:region: us-west-2\n  tfdeploy:docker_host: "ssh://me@there"\n  tfdeploy:secrets:\n    secure: AAA\n'
    )
    known = settings(file, "dev")
    assert places(known) == {"local": "", "docker": "ssh://me@there", "ec2": "us-west-2"}
    assert "tfdeploy:secrets" not in known
    assert places(settings(file, "other")) == {"local": "", "docker": "", "ec2": ""}
