"""The record on its way into the bucket: what is sent, in which order, and what the list says."""

import pytest

from tests.unit.backends.ec2.watchdog.sending import RUN, Sent, consistent, store, uploaded
from tfdeploy.agent.model.events import RUN_SUBMITTED, Event
from tfdeploy.agent.model.run_state import RunResult, RunState
from tfdeploy.agent.record import record_files
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.record.record_files import RecordList, list_files
from tfdeploy.agent.system.files import append
from tfdeploy.backends.ec2.watchdog.record_upload import LIST, PART, RecordUpload
from tfdeploy.backends.ec2.watchdog.s3 import PutError


def test_the_list_is_the_one_that_a_controller_makes(record: Record, sent: Sent) -> None:
    """Also of a task that was removed, and of a run that is not the current one."""
    append(record.log(RUN.id, "worker-7").path(0), b"last words\n")
    append(record.log("earlier", "worker-0").path(0), b"earlier\n")
    store(record, {"k.keras": b"model"})
    (record.run_folder(RUN.id) / "search.json").write_text("{}")
    strange = ["artifacts.draft/0", ".events.jsonl.7.draft", "../../lock", "../../code/a.zip", "../../import/record_id"]
    for path in [record.run_folder(RUN.id) / name for name in strange]:
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    assert RecordUpload(record.folder, sent.put).upload()
    listed = {file.name: (file.size, file.text) for file in list_files(record.folder)}
    uploaded = RecordList.from_dict(sent.told)
    assert {file.name: (file.size, file.text) for file in uploaded.files} == listed
    assert (sent.told["part"], PART) == (record_files.PART, record_files.PART)


def test_a_verdict_is_brought_at_once(record: Record, sent: Sent) -> None:
    brought = RecordUpload(record.folder, sent.put)
    assert brought.due()
    assert brought.upload()
    assert not brought.due()
    record.add_events(RUN.id, [Event(RUN_SUBMITTED, 2.0)])
    assert not brought.due()
    record.save(RunState(RUN, 1.0, result=RunResult("succeeded", "", 2.0)))
    assert brought.due()
    assert brought.upload()
    assert not brought.due()
    assert sent.told["result"] == "succeeded"


def test_a_folder_that_s3_refuses_does_not_keep_the_others_back(record: Record, sent: Sent) -> None:
    for number in range(5):
        append(record.log(RUN.id, f"worker-{number}").path(0), b"one\n")
    brought = RecordUpload(record.folder, sent.put)
    sent.refused = "worker-0"
    for _ in range(3):
        with pytest.raises(PutError):
            brought.upload()
    files = consistent(sent.objects)["files"]
    assert f"runs/{RUN.id}/logs/worker-0/0.log" not in files
    assert all(f"runs/{RUN.id}/logs/worker-{number}/0.log" in files for number in range(1, 5))


def test_of_a_log_that_grows_only_its_last_part_is_sent_again(record: Record, sent: Sent) -> None:
    path = record.log(RUN.id, "worker-0").path(0)
    name = f"runs/{RUN.id}/logs/worker-0/0.log"
    brought = RecordUpload(record.folder, sent.put)
    content = b"step 1\n" + bytes(2 * PART)
    append(path, content[7:])
    assert brought.upload()
    sent.news()
    for more in (b"a", bytes(PART)):
        append(path, more)
        content += more
        assert brought.upload()
        assert uploaded(sent.objects, consistent(sent.objects), name, len(content)) == content
    assert sent.news() == [f"{name}@2", LIST, f"{name}@2", f"{name}@3", LIST]
