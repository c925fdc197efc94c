"""`tfdeploy cp` from a pod, in whose image there need be no `tar`."""

import pytest

from tests.kubernetes.project import KubernetesProject
from tests.verbs import Verbs

pytestmark = pytest.mark.full

SCRIPT = "import time\nprint('waits', flush=True)\ntime.sleep(3600)\n"
MAKES = "mkdir out; head -c 3000000 /dev/urandom > out/big; ln -s /etc/passwd out/far; cat out/big"


def test_files_of_a_pod_are_copied_while_it_runs(project: KubernetesProject) -> None:
    project.write('command=["python", "train.py"], code="code", workers=1, wait="0"', SCRIPT)
    project.up()
    project.until_running("worker-0")
    verbs = Verbs(project.program, project.env)
    _, content, _ = verbs.call("exec", "worker-0", "--", "sh", "-c", MAKES)
    assert len(content) == 3_000_000
    assert verbs.call("cp", "worker-0:out/big", "-") == (0, content, "")
    code, _, beside = verbs.call("cp", "worker-0:out", ".")
    assert (code, beside) == (0, "far: skipped, a link to /etc/passwd, outside of the folder.\n")
    assert [path.name for path in (verbs.folder / "out").iterdir()] == ["big"]
    assert (verbs.folder / "out" / "big").read_bytes() == content
    assert verbs.call("cp", "worker-0:train_dir/none", ".")[0] == 3
    project.destroy()
