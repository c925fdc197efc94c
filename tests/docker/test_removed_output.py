"""What a worker prints while `up` removes it is in every copy of the record, byte for byte, also after `destroy`."""

import json
from pathlib import Path

from tests.docker.project import DockerProject
from tests.verbs import Verbs
from tests.waiting import until
from tfdeploy.agent.system.files import sha256_of
from tfdeploy.backends.container_layout import RECORD_FOLDER
from tfdeploy.backends.record_copy import record_archive

PRINTING = """\
import signal, time

signals = []
signal.signal(signal.SIGTERM, lambda *_: signals.append(1))
while not signals:
    print("tick", time.time(), flush=True)
    time.sleep(0.01)
for number in range(20_000):
    print("last words", number)
"""

READ = (
    "import hashlib, json, pathlib, sys; folder = pathlib.Path(sys.argv[1]); "
    "print(json.dumps({p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}))"
)
"""Prints the hash of each file of a folder."""


def test_the_last_lines_of_a_removed_worker_are_in_every_copy(project: DockerProject) -> None:
    job = "command=['python', 'train.py'], code='code', workers={workers}, wait='0'"
    project.write(job.format(workers=2), PRINTING)
    project.up()
    project.until_running("worker-0", "worker-1")
    run_id = project.job().spec.id
    project.write(job.format(workers=1), PRINTING)
    project.up()
    assert [*project.job().tasks] == ["worker-0"]
    logs = f"runs/{run_id}/logs/worker-1"

    def original() -> dict[str, str]:
        listed = project.inside("controller", "python3", "-c", READ, f"{RECORD_FOLDER}/{logs}")
        hashes: dict[str, str] = json.loads(listed)
        return hashes

    def copied(folder: Path) -> dict[str, str]:
        return {path.name: sha256_of(path) for path in (folder / logs).iterdir()}

    def has_all() -> bool:
        project.look()
        return copied(project.record().folder) == original()

    until(has_all, "the copy has what the controller has")
    stored = original()
    lines = [line.text for line in project.record().log(run_id, "worker-1").tail(20_001)]
    assert lines[1:] == [f"last words {number}" for number in range(20_000)]
    assert lines[0].startswith("tick")
    code, shown, error = Verbs(project.program, project.env).call("logs", "worker-1", "--tail", "1")
    assert (code, error) == (0, "")
    assert b"last words 19999" in shown
    project.destroy()
    (archive,) = Path(record_archive(project.cluster)).rglob("run_state.json")
    assert copied(archive.parents[2]) == stored
