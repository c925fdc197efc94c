"""The live page: who may ask for it, and what a browser that stays on it sees."""

import http.client
import socket
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.cli.browser import Browser, Tab
from tests.cli.made_up import content
from tests.waiting import until
from tfdeploy.cli import report_server
from tfdeploy.cli.report_server import MAX_CONNECTIONS, serve
from tfdeploy.errors import BackendError, Unreachable
from tfdeploy.report.html.document import Content, policy


class Cluster:
    """What the server looks at: a cluster whose age a test sets, or one that does not answer."""

    def __init__(self) -> None:
        self.age = 30.0
        self.looks = 0
        self.error: Exception | None = None

    def look(self) -> Content:
        self.looks += 1
        if self.error is not None:
            raise self.error
        return content(self.age)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    with serve("127.0.0.1", 0, cluster.look) as found:
        yield found


def answer(url: str, path: str, method: str = "GET", host: str = "") -> tuple[int, str, dict[str, str]]:
    """Status, body, and headers in lower case; `path` begins after the token."""
    place = urllib.parse.urlsplit(url)
    path = path if path.startswith("http") else place.path.rstrip("/") + path
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
    connection.request(method, path, headers={"Host": host or place.netloc})
    heard = connection.getresponse()
    text = heard.read().decode()
    connection.close()
    return heard.status, text, {name.lower(): value for name, value in heard.getheaders()}


def test_the_page_and_what_is_new_on_it_are_served(url: str) -> None:
    status, text, headers = answer(url, "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert headers["content-security-policy"] == f"{policy(live=True)}; frame-ancestors 'none'"
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
    status, text, _ = answer(url, "/data")
    assert status == 200
    assert text.startswith("<header")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example:1", "[::1", ":"]
)
def test_who_comes_by_another_name_is_sent_away(url: str, cluster: Cluster, host: str) -> None:
    assert answer(url, "/data", host=host)[0] == 421
    assert cluster.looks == 0


@pytest.mark.parametrize("host", ["localhost", "localhost:9000", "127.0.0.1:9000"])
def test_a_tunnel_may_have_another_port(url: str, host: str) -> None:
    assert answer(url, "/data", host=host)[0] == 200


@pytest.mark.parametrize("path", ["/etc/passwd", "/../x", "/data/", "http://evil.example/"])
def test_there_is_nothing_else(url: str, path: str) -> None:
    assert answer(url, path)[0] == 404


@pytest.mark.parametrize("path", ["/", "/data", "//", "/%2e/", "/wrong/", "/wrong/data"])
def test_without_the_token_of_the_url_nothing_is_served(url: str, cluster: Cluster, path: str) -> None:
    place = urllib.parse.urlsplit(url)
    assert len(place.path) > 30
    status, text, _ = answer(place._replace(path="").geturl(), path)
    assert (status, "use the whole URL" in text) == (404, True)
    assert cluster.looks == 0


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_nothing_can_be_done_but_look(url: str, cluster: Cluster, method: str) -> None:
    assert answer(url, "/data", method)[0] == 501
    assert cluster.looks == 0


def test_silent_and_slow_connections_keep_the_page_from_nobody(url: str) -> None:
    place = urllib.parse.urlsplit(url)
    before = threading.active_count()
    with ExitStack() as stack:
        opened = []
        for number in range(2 * MAX_CONNECTIONS):
            silent = stack.enter_context(socket.create_connection((place.hostname, place.port), timeout=10))
            if number % 2:
                silent.sendall(b"GET /")
            opened.append(silent)
        assert answer(url, "/data")[0] == 200
        for silent in opened[:MAX_CONNECTIONS]:
            assert silent.recv(1) == b"", "the server closes the oldest connections, before they time out"
    until(lambda: threading.active_count() <= before, "no thread is left")
    assert answer(url, "/data")[0] == 200


@pytest.mark.parametrize(
    ("request_line", "header", "status"),
    [
        ("GET {path}data", "Content-Length: 99999999999", 200),
        ("GET {path}data", "Transfer-Encoding: chunked", 200),
        ("GET {path}data", "A: " + "a" * 70_000, 431),
        ("GET {path}data" + "a" * 70_000, "A: a", 414),
        ("GET {path}data", "\r\n".join(f"A{number}: a" for number in range(200)), 431),
    ],
)
def test_a_request_is_not_read_beyond_a_limit(url: str, request_line: str, header: str, status: int) -> None:
    place = urllib.parse.urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=30) as connection:
        line = request_line.format(path=place.path)
        connection.sendall(f"{line} HTTP/1.1\r\nHost: {place.netloc}\r\n{header}\r\n\r\n".encode())
        assert int(connection.makefile("rb").readline().split()[1]) == status


def test_a_look_that_fails_is_told_in_a_sentence(url: str, cluster: Cluster) -> None:
    cluster.error = Unreachable("the engine does not answer")
    assert answer(url, "/data")[:2] == (503, "the engine does not answer")
    cluster.error = KeyError("<b>")
    status, text, headers = answer(url, "/")
    assert (status, text) == (500, "internal error: KeyError: '<b>'")
    assert headers["content-type"].startswith("text/plain")


def test_readers_share_a_look(url: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_server, "_FRESH_SECONDS", 60.0)
    for _ in range(3):
        answer(url, "/data")
    assert cluster.looks == 1


@pytest.mark.parametrize("address", ["0.0.0.0", "", "192.0.2.1", "::"])
def test_only_loopback_is_served(cluster: Cluster, address: str) -> None:
    with pytest.raises(BackendError, match=r"on 127\.0\.0\.1 only"), serve(address, 0, cluster.look):
        pass


def test_a_port_that_is_taken_is_told(cluster: Cluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(BackendError, match=f"cannot serve on port {port}: .*in use"),
            serve("127.0.0.1", port, cluster.look),
        ):
            pass


@pytest.fixture
def tab(browser: Browser, url: str) -> Iterator[Tab]:
    found = browser.open(url, height=700)
    yield found
    found.close()


def shown(tab: Tab, expression: str) -> Callable[[], bool]:
    return lambda: bool(tab.ask(expression))


def test_the_page_keeps_up_and_the_reader_keeps_the_place(tab: Tab, cluster: Cluster) -> None:
    assert tab.texts("head title") == ["mnist: running"]
    tab.ask("document.querySelector('#log-worker-0').open = true; document.querySelector('#phases').open = true")
    tab.ask(
        "document.querySelector('#lines-worker-0').scrollTop = 40; document.querySelector('#lines-worker-0').focus()"
    )
    tab.ask("document.querySelector('#configuration').mark = 'the same'; scrollTo(0, 600)")
    before = tab.ask("scrollY")
    cluster.age = 60.0
    until(shown(tab, "document.querySelector('#events').textContent.includes('attempt 2')"), "the restart is shown")
    assert tab.ask("document.querySelector('#log-worker-0').open && document.querySelector('#phases').open")
    assert not tab.ask("document.querySelector('#log-ps-0').open")
    assert tab.ask("document.querySelector('#lines-worker-0').scrollTop") == 40
    assert tab.ask("document.activeElement.id") == "lines-worker-0"
    assert tab.ask("document.querySelector('#configuration').mark") == "the same"
    assert (before, tab.ask("scrollY")) == (600, 600)
    cluster.age = 100.0
    until(shown(tab, "document.title === 'mnist: succeeded'"), "the end is shown")
    assert tab.texts("header .state") == ["succeeded"]
    tab.picture("page-live.png")
    assert tab.complaints() == []
    assert {urllib.parse.urlsplit(asked).hostname for asked in tab.requested() if asked.startswith("http")} == {
        "127.0.0.1"
    }


def test_a_log_that_is_read_at_its_end_follows(tab: Tab, cluster: Cluster) -> None:
    tab.ask("document.querySelector('#log-worker-0').open = true")
    tab.ask("document.querySelector('#lines-worker-0').scrollTop = 1e6")
    cluster.age = 60.0
    until(shown(tab, "document.querySelector('#events').textContent.includes('attempt 2')"), "the restart is shown")
    assert tab.ask(
        "(one => one.scrollHeight - one.clientHeight - one.scrollTop < 4)(document.querySelector('#lines-worker-0'))"
    )


def test_a_source_that_fails_is_told_until_it_answers_again(tab: Tab, cluster: Cluster) -> None:
    cluster.error = Unreachable("the controller does not answer.")
    until(shown(tab, "!document.querySelector('#silence').hidden"), "the page says so")
    words = tab.texts("#silence")[0]
    assert words.startswith("No news since ")
    assert words.endswith(" UTC: the controller does not answer. This page shows the state at that time.")
    assert tab.texts("h1") == ["mnist running"]
    tab.picture("page-silent.png")
    cluster.error = None
    until(shown(tab, "document.querySelector('#silence').hidden"), "the page is live again")


def test_a_server_that_has_gone_is_told(browser: Browser, cluster: Cluster) -> None:
    with ExitStack() as stack:
        tab = browser.open(stack.enter_context(serve("localhost", 0, cluster.look)))
        stack.close()
        until(shown(tab, "!document.querySelector('#silence').hidden"), "the page says so")
        assert "tfdeploy does not respond" in tab.texts("#silence")[0]
        tab.close()
