"""The written page in a real browser: what a reader sees, on any screen, and what the browser thinks of it."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.browser import Browser, Tab
from tests.cli.made_up import EVENTS, content, paid
from tfdeploy.report.events import sentence, with_waits
from tfdeploy.report.html.document import Content, page

HOSTILE = (
    '<script>document.title = "stolen"</script><img src="http://192.0.2.1/x" onerror="document.title=1"> \x1b[31mred'
)
TOO_WIDE = (
    "[...document.querySelectorAll('body *')].filter(one => one.getBoundingClientRect().right > innerWidth + 1 && \
!one.closest('.box, pre, .unseen, nav')).map(one => one.outerHTML.slice(0, 80))"
)


@pytest.fixture
def read(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Tab]]:
    """Writes a page to a file and opens it."""
    tabs: list[Tab] = []

    def opened(made: Content, **how: bool | int) -> Tab:
        (tmp_path / "page.html").write_text(page(made), "utf-8")
        tabs.append(browser.open((tmp_path / "page.html").as_uri(), **how))  # type: ignore[arg-type]
        return tabs[-1]

    yield opened
    for tab in tabs:
        tab.close()


def test_the_page_tells_title_rows_curves_and_timeline(read: Callable[..., Tab]) -> None:
    tab = read(content(), script=False)
    assert tab.texts("head title") == ["mnist: succeeded"]
    assert tab.texts("h1") == ["mnist succeeded"]
    assert tab.texts("[aria-label=Machines] th") == ["machine", "role", "provider", "size", "status"]
    assert tab.texts("[aria-label=Tasks] th")[:2] == ["hostname", "status"]
    assert tab.texts("[aria-label=Tasks] .c-hostname") == ["ps-0", "worker-0", "worker-1"]
    assert tab.texts("[aria-label=Tasks] .word") == ["stopped (run finished)", "succeeded", "succeeded"]
    assert tab.texts(".curve h3") == ["Loss by step", "Validation accuracy by step"]
    assert tab.texts(".curve path title") == ["worker-0", "worker-1"] * 2
    assert tab.texts(".lane") == ["ps-0  stopped", "worker-0  succeeded", "worker-1  succeeded"]
    assert len(tab.texts("svg.phase.warn")) == 2
    assert tab.texts(".events .text") == [sentence(event) for event in with_waits(EVENTS)]
    assert "worker-1 SIGKILL: restarting in 8 s (2 of 3)" in tab.texts(".events .text")


@pytest.mark.parametrize("width", [360, 400, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("name", "made"), [("over", content()), ("running", paid(content(45.0, HOSTILE)))], ids=["over", "running"]
)
def test_the_page_fits_every_screen(read: Callable[..., Tab], name: str, made: Content, width: int, dark: bool) -> None:
    tab = read(made, width=width, dark=dark)
    tab.picture(f"page-{name}-{width}-{'dark' if dark else 'light'}.png")
    assert tab.ask("document.documentElement.scrollWidth") == width
    tab.ask("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert tab.ask("document.documentElement.scrollWidth") == width
    assert tab.ask(TOO_WIDE) == []
    paper = tab.ask("getComputedStyle(document.documentElement).backgroundColor.match(/[0-9]+/g).map(Number)")
    assert (sum(paper) < 128) is dark
    assert tab.complaints() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_words_stand_out_from_their_paper(read: Callable[..., Tab], dark: bool) -> None:
    """Each text has the contrast that WCAG 2 asks for at level AA: 4.5 to 1."""
    tab = read(paid(content(45.0)), dark=dark)
    faint = """(() => {
        const light = (text) => { const [r, g, b] = text.match(/[0-9.]+/g).map(Number).map((part) => part / 255)
            .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const paper = (one) => { for (; one; one = one.parentElement) { const found = getComputedStyle(one).backgroundColor;
            if (!/, 0\\)$/.test(found)) return found; } };
        const under = (one) => one.closest('svg.phase') ? getComputedStyle(one.closest('svg.phase').querySelector('rect')).fill
            : paper(one);
        return [...document.querySelectorAll('main *')].filter((one) => [...one.childNodes].some((node) => node.nodeType === 3
            && node.data.trim()) && one.tagName !== 'title').map((one) => {
            const style = getComputedStyle(one), ink = one instanceof SVGElement ? style.fill : style.color;
            const [high, low] = [light(ink), light(under(one))].sort((a, b) => b - a);
            return [(high + 0.05) / (low + 0.05), one.outerHTML.slice(0, 120)];
        }).filter(([ratio]) => ratio < 4.5);
    })()"""
    assert tab.ask(faint) == []


def test_what_a_task_prints_does_nothing_and_nothing_is_asked_of_any_network(read: Callable[..., Tab]) -> None:
    tab = read(content(45.0, HOSTILE))
    tab.ask("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert [url for url in tab.requested() if not url.startswith(("file:", "data:"))] == []
    assert tab.ask("document.title") == "mnist: running"
    assert tab.ask("document.querySelectorAll('script, main img').length") == 0
    assert tab.texts("#log-worker-1 .entry:last-child .text") == [HOSTILE.replace("\x1b[31m", "")]
    assert tab.texts(".reason")[0].startswith("<script>")


def test_readers_that_listen_find_their_way(read: Callable[..., Tab]) -> None:
    tab = read(content())
    tab.call("Accessibility.enable")
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node.get("ignored")
    ]
    images = [name for role, name in named if role in ("image", "img", "graphics-document")]
    assert any(name.startswith("loss by step: worker-0 from 2.") for name in images)
    assert any(name.startswith("Phases of 3 tasks") for name in images)
    assert ("navigation", "On this page") in named
    assert {"Machines", "Tasks", "Endpoints", "Options", "Versions"} <= {
        name for role, name in named if role == "table"
    }
    assert [name for role, name in named if role in ("table", "region", "image") and not name] == []
    levels = tab.ask("[...document.querySelectorAll('h1, h2, h3')].map(one => +one.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
