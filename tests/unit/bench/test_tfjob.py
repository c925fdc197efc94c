"""The rows beside a TFJob: what becomes of the measurements, and the flags that its program gets."""

import json
import sys
from pathlib import Path

import pytest

from bench import tfjob
from bench.tasks import from_tf_config
from bench.tfjob import Faults, Whole


def test_what_a_tfjob_leaves_and_loses_is_beside_ours() -> None:
    ours, peer = Whole(8.0, 20.0, 0, 100.0), Whole(4.0, 10.0, 1, 0.0)
    first, done, left, readable = tfjob.rows_of_wholes([(ours, peer), (ours, peer)])
    assert [row.judged for row in (first, done)] == [2.0, 2.0]
    assert (left.ours, left.peer, left.met) == ("0", "1", True)
    assert (readable.ours, readable.peer, readable.met) == ("100 %", "0 %", True)
    assert not tfjob.rows_of_wholes([(Whole(8.0, 20.0, 1, 50.0), peer)])[2].met
    assert not tfjob.rows_of_wholes([(Whole(8.0, 20.0, 1, 50.0), peer)])[3].met


def test_a_tfjob_that_a_lost_node_ends_has_no_ratio() -> None:
    ours, peer = Faults((5.0, 6.0), 7.0, 30.0, False), Faults((10.0, 24.0), 14.0, 25.0, False)
    rows = tfjob.rows_of_faults([(ours, peer)])
    assert [row.judged for row in rows] == [0.5, 0.25, 0.5, 1.2]
    ended = tfjob.rows_of_faults([(ours, Faults((10.0, 24.0), 14.0, 25.0, True))])[-1]
    assert (ended.ours, ended.peer) == ("30 s", "never: Failed after 25 s")


def test_tf_config_becomes_the_four_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys\nprint(sys.argv[1:])")
    cluster = {"ps": ["p:1"], "worker": ["a:1", "b:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 1}}))
    monkeypatch.setattr(sys, "argv", ["from_tf_config.py", str(program), "--steps=5"])
    from_tf_config.main()
    flags = ["--steps=5", "--job_name=worker", "--task_index=1", "--ps_hosts=p:1", "--worker_hosts=a:1,b:1"]
    assert capsys.readouterr().out == f"{flags}\n"
