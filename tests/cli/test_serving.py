"""The live page: who may ask for it, and what a browser that stays on it sees."""

import http.client
import socket
import urllib.parse
from collections.abc import Callable, Iterator

import pytest

from tests.cli.browser import Browser, Tab
from tests.cli.made_up import content
from tests.waiting import until
from tfdeploy.cli.report_server import serve
from tfdeploy.errors import BackendError, Unreachable
from tfdeploy.report.html.document import page, policy


class Cluster:
    """What the server looks at: a cluster whose age a test sets, or one that does not answer."""

    def __init__(self) -> None:
        self.age = 30.0
        self.looks = 0
        self.error: Exception | None = None

    def look(self) -> str:
        self.looks += 1
        if self.error is not None:
            raise self.error
        return page(content(self.age), live=True)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    with serve(0, cluster.look) as found:
        yield found


def answer(url: str, path: str, method: str = "GET") -> tuple[int, str, dict[str, str]]:
    """Status, body, and headers in lower case; `path` begins after the token."""
    place = urllib.parse.urlsplit(url)
    path = path if path.startswith("http") else place.path.rstrip("/") + path
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
    connection.request(method, path)
    heard = connection.getresponse()
    text = heard.read().decode()
    connection.close()
    return heard.status, text, {name.lower(): value for name, value in heard.getheaders()}


def test_the_page_is_served_on_this_computer_alone(url: str) -> None:
    assert url.startswith("http://127.0.0.1:")
    status, text, headers = answer(url, "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert headers["content-security-policy"] == f"{policy(live=True)}; frame-ancestors 'none'"
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")


@pytest.mark.parametrize("path", ["/etc/passwd", "/../x", "/data", "http://evil.example/"])
def test_there_is_nothing_else(url: str, path: str) -> None:
    assert answer(url, path)[0] == 404


@pytest.mark.parametrize("path", ["/", "//", "/%2e/", "/wrong/"])
def test_without_the_token_of_the_url_nothing_is_served(url: str, cluster: Cluster, path: str) -> None:
    place = urllib.parse.urlsplit(url)
    assert len(place.path) > 30
    status, text, _ = answer(place._replace(path="").geturl(), path)
    assert (status, "use the whole URL" in text) == (404, True)
    assert cluster.looks == 0


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_nothing_can_be_done_but_look(url: str, cluster: Cluster, method: str) -> None:
    assert answer(url, "/", method)[0] == 501
    assert cluster.looks == 0


def test_a_silent_connection_keeps_the_page_from_nobody(url: str) -> None:
    place = urllib.parse.urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=10):
        assert answer(url, "/")[0] == 200


def test_a_look_that_fails_is_told_in_a_sentence(url: str, cluster: Cluster) -> None:
    cluster.error = Unreachable("the engine does not answer")
    status, text, _ = answer(url, "/")
    assert (status, "<p>the engine does not answer</p>" in text) == (503, True)
    cluster.error = KeyError("<b>")
    status, text, _ = answer(url, "/")
    assert (status, "internal error: KeyError: &#x27;&lt;b&gt;&#x27;" in text) == (503, True)


def test_a_port_that_is_taken_is_told(cluster: Cluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BackendError, match=f"cannot serve on port {port}: .*in use"), serve(port, cluster.look):
            pass


@pytest.fixture
def tab(browser: Browser, url: str) -> Iterator[Tab]:
    found = browser.open(url, height=700)
    yield found
    found.close()


KEPT = """(log => document.querySelector('#log-worker-0')?.open && document.querySelector('#phases')?.open && scrollY === 600
&& !document.querySelector('#log-ps-0')?.open && log && log.scrollHeight - log.clientHeight - log.scrollTop < 4)
(document.querySelector('#lines-worker-0'))"""


def shown(tab: Tab, expression: str) -> Callable[[], bool]:
    return lambda: bool(tab.ask(expression))


def test_the_page_reloads_and_what_is_unfolded_stays_so(tab: Tab, cluster: Cluster) -> None:
    assert tab.texts("head title") == ["mnist: running"]
    tab.ask("document.querySelectorAll('#log-worker-0, #phases').forEach(one => one.open = true); scrollTo(0, 600)")
    cluster.age = 60.0
    until(shown(tab, "document.querySelector('#events')?.textContent.includes('attempt 2')"), "the restart is shown")
    until(shown(tab, KEPT), "what is unfolded, the position, and the last lines stay")
    cluster.age = 100.0
    until(shown(tab, "document.title === 'mnist: succeeded'"), "the end is shown")
    until(lambda: tab.texts("header .state") == ["succeeded"], "the state is shown")
    assert tab.complaints() == []
    assert all(asked.startswith(("http://127.0.0.1:", "data:")) for asked in tab.requested())
