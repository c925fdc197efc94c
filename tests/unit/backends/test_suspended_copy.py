"""A suspended command that copies a record (Ctrl-Z) blocks no other command."""

import subprocess
import sys
from typing import Any, cast

import pytest

from tests.clusters import cluster_ref
from tests.components.processes import halted
from tests.unit.backends.distant import distant_record
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.record import RecordView, ViewRequest
from tfdeploy.backends import controller_calls, record_copy
from tfdeploy.backends.record_copy import RecordCopy, RecordCopyBusy

HOLDS = """
import sys
from tfdeploy.agent.system.locks import Path, locked
with locked(Path(sys.argv[1])):
    print(flush=True)
    input()
"""


def test_an_observation_reports_what_the_controller_has_and_what_deletes_something_is_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    record_copy._warn.cache_clear()
    for name in ("_SHORT_WAIT", "_LONG_WAIT"):
        monkeypatch.setattr(record_copy, name, 0.2)
    monkeypatch.setattr(controller_calls, "view", lambda *_: RecordView(5.0))
    with distant_record() as distant:
        distant.submit("run", 1)
        distant.update()
        copy = RecordCopy(cluster_ref())
        command = [sys.executable, "-c", HOLDS, str(copy.home)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            with halted(process.pid):
                view, silent_since = record_copy.observed_view(cast(Any, distant), copy, None, ViewRequest(), False, [])
                assert (view.at, silent_since) == (5.0, None)
                (warning,) = caplog.messages
                assert "or is suspended (Ctrl-Z). Resume or end it." in warning
                with pytest.raises(RecordCopyBusy):
                    copy.download(distant)
        distant.print(0, [(STDOUT, b"more")])
        distant.update()
        distant.check_same()
