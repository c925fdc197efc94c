"""tf.data service in containers: a training that is bound by its input is faster by it."""

import re

import pytest

from tests.docker.project import DockerProject
from tests.integration.conftest import ROOT
from tests.tensorflow_env import ONE_THREAD

CODE = str(ROOT / "programs" / "data_service" / "train")
ENV = {**ONE_THREAD, "ELEMENTS": "200", "MILLISECONDS": "60", "EPOCHS": "2"}
EPOCH = re.compile(r"epoch 1: 200 elements, 200 different, (\S+) s")


@pytest.mark.full
def test_four_data_workers_are_faster_than_none(project: DockerProject, tensorflow_volume: str) -> None:
    arguments = (
        f'command=["python", "train.py"], code={CODE!r}, workers=1, env={ENV}, '
        f'container={{"volumes": [{tensorflow_volume!r}]}}, metrics={{"seconds": r"{EPOCH.pattern}"}}'
    )
    seconds = []
    for service in ("", ', data_service={"workers": 4}'):
        project.write(arguments + service)
        project.up()
        assert project.outputs()["state"] == "succeeded"
        seconds.append(float(project.outputs()["metrics"]["seconds"]))
    alone, served = seconds
    print(f"\nan epoch: {alone} s without data workers, {served} s with four: {alone / served:.1f} times faster")
    assert served < alone
    project.destroy()
