"""Each job of a cluster has an image, limits and an environment of its own, and its containers run with them."""

import json

from tests.docker.project import DockerProject

SAYS = """\
import json, os, pathlib, time
limits = {}
for name, v1 in (("cpu.max", "cpu/cpu.cfs_quota_us"), ("memory.max", "memory/memory.limit_in_bytes")):
    found = [path for path in (pathlib.Path("/sys/fs/cgroup", part) for part in (name, v1)) if path.exists()]
    limits[name] = found[0].read_text().split()[0]
print(json.dumps([os.getuid(), os.environ["ROLE"], os.environ.get("OWN"), limits]), flush=True)
folder = pathlib.Path(os.environ["COUNTER"])
(folder / os.environ["TFDEPLOY_HOSTNAME"]).touch()
while len(list(folder.iterdir())) < 2:
    time.sleep(0.1)
"""
"""Prints who it is, and which limits the kernel enforces on its container; ends when both tasks have."""


def test_each_job_has_an_image_limits_and_an_environment_of_its_own(project: DockerProject, user_image: str) -> None:
    chief = {
        "container": {"image": user_image},
        "cpus": 0.25,
        "memory": "96MiB",
        "env": {"ROLE": "chief", "OWN": "of the chief"},
    }
    worker = {"cpus": 0.5, "memory": "128MiB"}
    project.write(
        'command=["python", "train.py"], code="code", chief=True, workers=1, wait="5m", '
        f"env={{'ROLE': 'any', 'COUNTER': {project.env['COUNTER']!r}}}, jobs={{'chief': {chief!r}, 'worker': {worker!r}}}",
        SAYS,
    )
    project.up()
    outputs = project.outputs()
    assert outputs["state"] == "succeeded", outputs["status"]
    said = {name: json.loads(lines[-1]) for name, lines in outputs["logs"].items()}
    assert said == {
        "chief-0": [1000, "chief", "of the chief", {"cpu.max": "25000", "memory.max": str(96 << 20)}],
        "worker-0": [0, "any", None, {"cpu.max": "50000", "memory.max": str(128 << 20)}],
    }
    project.destroy()
