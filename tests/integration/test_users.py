"""What a user meets first: a program of one's own, and what is refused."""

import socket
from pathlib import Path

from tests.integration.conftest import Project
from tests.mac import ENVIRONMENT

REFUSED = {
    "workers=-1": "test: workers: -1 is out of range. Use an integer from 0 to 1000.",
    "workers=1, code='missing'": "missing does not exist",
    "workers=1, jobs={'worker': {'gpus': 99}}": "99 gpus, and no machine has that free",
}
"""One each of the arguments alone, of the files, and of the machine; all refusals are in components/test_component_refusals."""


def test_bad_input_is_refused_at_preview_in_one_sentence(project: Project) -> None:
    for arguments, sentence in REFUSED.items():
        code = "" if "code=" in arguments else 'code="code",'
        project.write(f'command=["python", "train.py"], {code} {arguments}')
        done = project.call("preview", "--stack", project.stack)
        assert done.exit_code != 0
        assert sentence in done.output
        assert "Traceback" not in done.output
        assert "tfdeploy:index" not in done.output
        assert not (project.folder / "state").exists()


def test_a_port_that_is_taken_is_refused_and_ones_own_is_not(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        arguments = (
            f'command=["python", "train.py"], code="code", workers=1, jobs={{"worker": {{"port": {port}}}}}, wait="0"'
        )
        project.write(arguments, "import time\ntime.sleep(600)")
        said = project.call("preview", "--stack", project.stack).output
        assert f"port: {port} (for worker-0) is in use" in said
    project.up()
    project.until_running("worker-0")
    assert project.up().steps() == {"unchanged": 6}
    assert project.outputs()["endpoints"] == {"worker-0": f"127.0.0.1:{port}"}
    project.destroy()


def test_local_is_refused_on_a_mac_with_what_to_use_instead(project: Project) -> None:
    project.env.update(ENVIRONMENT)
    for call in (project.call("preview", "--stack", project.stack), project.up(fails=True)):
        assert call.exit_code != 0
        assert "backend: 'local' needs Linux, and this is macOS. Run the tasks as containers" in call.output
        assert "Traceback" not in call.output
    assert [one["type"] for one in project.resources()] == ["pulumi:pulumi:Stack"]
    assert not Path(project.env["XDG_STATE_HOME"], "tfdeploy").exists()
