"""A row that fails or that is left out does not end the others, and says why."""

import os
import signal
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench import __main__ as main
from bench import needs
from bench.processes import BenchError, LeftOut
from bench.table import Row, limit


def met() -> list[Row]:
    return [limit("something", [1.0], 2, " s")]


def fails() -> list[Row]:
    try:
        raise BenchError("`pulumi up` ended with exit code 255; its last lines:\nno space left")
    finally:
        raise BenchError("`pulumi destroy` ended with exit code 255; its last lines:\nlocked")


def cannot() -> list[Row]:
    raise LeftOut("an image cannot be made: DockerFailed: debootstrap ended with exit code 1")


def has_a_fault() -> list[Row]:
    raise ZeroDivisionError


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rows that are not measured, and one that is."""
    monkeypatch.setattr("bench.noop.run", fails)
    monkeypatch.setattr("bench.preview.run", cannot)
    monkeypatch.setattr("bench.imports.run", has_a_fault)
    monkeypatch.setattr("bench.ends.run", met)
    monkeypatch.setattr("bench.ending.watch", lambda: None)
    monkeypatch.setattr("bench.quiet.wait_for_quiet", lambda: 0.0)


@pytest.mark.usefixtures("rows")
def test_each_row_says_what_became_of_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "noop", "preview", "import", "ends"])
    assert main.main() == 1
    said = capsys.readouterr().out
    assert "no space left\nfailed: `pulumi destroy` ended" in said
    assert "  preview is left out: an image cannot be made" in said
    assert "ZeroDivisionError" in said
    assert "| something " in said


@pytest.mark.usefixtures("rows")
def test_a_row_that_does_not_end_in_time_fails_and_the_next_one_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.noop.run", lambda: threading.Event().wait(60))
    monkeypatch.setattr(main, "DEADLINES", {"noop": 0.2})
    monkeypatch.setattr("sys.argv", ["bench", "noop", "ends"])
    assert main.main() == 1
    said = capsys.readouterr().out
    assert "  noop failed: it did not end within 0.2 s" in said
    assert "| something " in said
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.usefixtures("rows")
def test_a_row_that_is_left_out_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "preview", "ends"])
    assert main.main() == 0


@pytest.fixture
def docs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the page, of a benchmark that has two rows which are not measured, and one that is."""
    names = ("noop", "preview", "ends")
    monkeypatch.setattr(main, "ROWS", {name: main.ROWS[name] for name in names})
    monkeypatch.setattr(main, "DOCS", tmp_path)
    monkeypatch.setattr(main, "RESULTS", tmp_path / "results.json")
    return tmp_path


@pytest.mark.usefixtures("rows")
def test_the_page_names_what_is_missing(monkeypatch: pytest.MonkeyPatch, docs: Path) -> None:
    monkeypatch.setattr("sys.argv", ["bench"])
    assert main.main() == 1
    said = (docs / main.PAGE).read_text()
    assert "- **`noop` failed**: `pulumi destroy` ended with exit code 255; its last lines:\n" in said
    assert (
        "- `preview` is left out: an image cannot be made: DockerFailed: debootstrap ended with exit code 1\n" in said
    )
    assert "| `ends` | something | 1 s" in said


@pytest.mark.usefixtures("rows")
def test_single_rows_are_printed_and_on_request_replaced_in_the_page(
    monkeypatch: pytest.MonkeyPatch, docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench"])
    main.main()
    before = (docs / main.PAGE).read_text()
    monkeypatch.setattr("bench.noop.run", met)
    monkeypatch.setattr("sys.argv", ["bench", "noop"])
    assert main.main() == 0
    assert (docs / main.PAGE).read_text() == before
    monkeypatch.setattr("sys.argv", ["bench", "--update", "noop"])
    assert main.main() == 0
    assert "`noop` failed" not in (docs / main.PAGE).read_text()
    assert "`preview` is left out" in (docs / main.PAGE).read_text()


@pytest.mark.usefixtures("rows")
def test_a_missed_target_without_a_reason_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.noop.run", lambda: [limit("something", [3.0], 2, " s")])
    monkeypatch.setattr("sys.argv", ["bench", "noop"])
    assert main.main() == 1
    assert "error: noop: 'something' misses its target, and bench/notes.toml has no reason" in capsys.readouterr().out


def test_without_an_engine_the_row_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(needs, "_set_up", lambda *steps: None)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with ExitStack() as stack:
        reason = needs.docker(stack)
    assert reason.startswith("NoEngine: ")
    assert "only root can" in reason
    assert "\n" not in reason


def test_without_the_set_up_the_row_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "setup").write_text("#!/bin/sh\necho no docker provider\nexit 1\n")
    (tmp_path / "tools" / "setup").chmod(0o755)
    monkeypatch.setattr(needs, "ROOT", tmp_path / "bench")
    with ExitStack() as stack:
        reason = needs.docker(stack)
    assert reason.endswith("`tools/setup local docker` ended with exit code 1; its last lines: no docker provider")
    assert "\n" not in reason


def test_an_image_that_cannot_be_made_leaves_the_row_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def provide(_: str) -> str:
        raise OSError("no debootstrap")

    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    with pytest.raises(LeftOut, match="an image cannot be made: OSError: no debootstrap"):
        needs.image_of(provide)
