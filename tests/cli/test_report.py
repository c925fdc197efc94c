"""`tfdeploy report` of a real cluster: as a file, live, and when the cluster is gone."""

import signal

from tests.cli.browser import Browser
from tests.cli.calling import open_gate, start, tfdeploy
from tests.http_server import fetched
from tests.integration.conftest import Project
from tests.waiting import PATIENCE, until


def test_a_page_is_written_while_it_trains_and_after_destroy(training: Project, browser: Browser) -> None:
    def lines() -> int:
        shown = tfdeploy(training, "report", "--save", "live.html", "--json")
        assert shown.code == 0, shown.err
        return (training.program / "live.html").read_text().count(": loss")

    until(lambda: lines() > 0, "the page has what worker-0 printed")
    tab = browser.open((training.program / "live.html").as_uri())
    assert tab.texts("head title") == ["test: running"]
    assert tab.texts("[aria-label=Tasks] .word") == ["running"] * 3
    # The axis is logarithmic once the loss has fallen far.
    assert tab.texts(".curve h3") in (["Loss by step"], ["Loss by step, logarithmic"])
    names, addresses = (tab.texts(f"[aria-label=Endpoints] tbody {cell}") for cell in ("th", "td"))
    (shown,) = tfdeploy(training, "status", "--json").data
    assert dict(zip(names, addresses, strict=True)) == shown["endpoints"]
    names, values = (tab.texts(f"[aria-label=Run] tbody {cell}") for cell in ("th", "td"))
    submitted = dict(zip(names, values, strict=True))
    assert submitted["command"] == "python train.py --train_steps=999999"
    assert submitted["tasks"] == "ps: 1, worker: 2"
    assert tab.requested() == [(training.program / "live.html").as_uri()]
    tab.close()

    open_gate(training)
    assert tfdeploy(training, "wait").code == 0
    training.destroy()
    written = tfdeploy(training, "report")
    assert (written.code, written.out) == (0, "test.html\n")
    tab = browser.open((training.program / "test.html").as_uri())
    assert tab.texts("head title") == ["test: succeeded"]
    assert "accuracy" in (training.program / "test.html").read_text()
    tab.close()


def test_a_live_page_follows_until_ctrl_c(training: Project) -> None:
    process = start(training, "report", "--serve")
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")

        until(lambda: b": loss" in fetched(url), "the page has what worker-0 printed")
        open_gate(training)
        until(lambda: b"succeeded" in fetched(url), "the page tells the end")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.communicate()
