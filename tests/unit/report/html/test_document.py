"""The page: what is on it, and that what a task prints cannot be more than text."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tests.cli.made_up import BEGIN, content, paid
from tfdeploy.report.html.document import LAST_LINES, Content, fragment, page, policy, task_columns
from tfdeploy.report.html.markup import element
from tfdeploy.report.program_problems import Finding
from tfdeploy.report.tables import Table, without_empty_columns

FIRST = ["hostname", "status"]

NASTY = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre></style><!-- ",
    "&lt;b&gt; &amp;",
    "\x1b[31mred\x1b[0m \x00\x07 \ud800 \u202eabc",
)


class Outline(HTMLParser):
    """The elements of a document with their attributes, and whether they are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def names(self) -> set[str]:
        return {name for name, _ in self.found}

    def ids(self) -> list[str]:
        return [found["id"] or "" for _, found in self.found if "id" in found]


def test_the_page_is_well_formed_has_all_parts_and_needs_nothing_else() -> None:
    seen = Outline(page(content()))
    assert seen.open == []
    assert len(seen.ids()) == len(set(seen.ids()))
    parts = ["head", "contents", "results", "curves", "tasks", "timeline", "logs", "machines", "configuration", "end"]
    assert [name for name in seen.ids() if name in parts] == parts
    links = {found["href"] for name, found in seen.found if name == "a"}
    assert links == {f"#{name}" for name in parts[2:-1]}
    for name, found in seen.found:
        assert name != "table" or seen.found[seen.found.index((name, found)) + 1][0] == "caption"
    assert not {"script", "img", "iframe", "form", "object", "base"} & seen.names()
    sources = [value for _, found in seen.found for key, value in found.items() if key in ("src", "href", "action")]
    assert all(value and value.startswith(("#", "data:")) for value in sources)
    assert all("style" not in found and not any(key.startswith("on") for key in found) for _, found in seen.found)


def test_only_a_live_page_has_a_script() -> None:
    assert [name for name, _ in Outline(page(content(), live=True)).found].count("script") == 1
    assert "script-src" not in policy()
    assert "script-src 'sha256-" in policy(live=True)
    assert "connect-src" not in policy(live=True)
    assert "unsafe" not in policy(live=True)


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([{"hostname": "ps-0"}], ["hostname"]),
        (
            [{"container": "1", "machine": "box", "status": "running", "hostname": "ps-0"}],
            [*FIRST, "machine", "container"],
        ),
        ([{"hostname": "ps-0", "public_ip": ""}, {"hostname": "ps-1", "public_ip": "::1"}], ["hostname", "public_ip"]),
        ([], FIRST),
    ],
)
def test_tasks_begin_with_their_status_and_have_no_empty_column(rows: list[dict[str, str]], columns: list[str]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["status", "hostname"]
    made = Table("Tasks", names, [dict.fromkeys(names, "") | row for row in rows])
    assert list(without_empty_columns(task_columns(made)).columns) == columns


@pytest.mark.parametrize(("machines", "left"), [(("a", "a"), FIRST), (("a", "b"), [*FIRST, "machine"])])
def test_what_is_the_same_for_all_tasks_is_not_repeated(machines: tuple[str, str], left: list[str]) -> None:
    rows = [{"hostname": "ps-0", "status": "running", "machine": machine} for machine in machines]
    assert task_columns(Table("Tasks", ["machine", *FIRST], rows), ["machine"]).columns == left


def test_the_results_have_the_last_value_of_each_quantity_that_is_not_a_metric() -> None:
    lines = {
        name: [(BEGIN + at, f"step {at} loss {9 - at}{index}") for at in range(1, 4)]
        for index, name in enumerate(("ps-0", "worker-0"))
    }
    text = fragment(replace(content(), lines=lines))
    assert '<span class="name">loss</span><b>61</b><small>worker-0, step 3</small>' in text
    assert text.count('class="tile"') == 2, "the metric is the other"


def test_the_cause_of_a_failure_and_how_long_the_run_took_are_at_the_top_as_text() -> None:
    made = content()
    failed = Finding("worker-1", "", "Fix it.", ["ValueError: <b>", "step 5"])
    text = fragment(replace(made, report=replace(made.report, failures=[failed], took="1m30s")))
    assert '<dt>took</dt><dd class="f-took">1m30s</dd>' in text
    assert "<b>worker-1</b>: Fix it." in text
    assert "<pre>ValueError: &lt;b&gt;\nstep 5</pre>" in text


def test_what_machines_cost_is_told_in_words() -> None:
    text = fragment(paid(content()))
    assert "$0.36/h now, $0.06 so far. The planned machines cost at most $25.92." in text
    assert "A machine terminates itself after 15m without tasks." in text


def test_only_the_last_lines_stand_on_the_page() -> None:
    made = replace(content(), lines={"worker-0": [(BEGIN, f"line {place}") for place in range(5000)]})
    text = fragment(made)
    assert f"the last {LAST_LINES} of 5000 lines" in text
    assert "line 4999<" in text
    assert "line 4799<" not in text


def test_thousands_of_points_make_a_page_that_is_not_large() -> None:
    lines = {
        f"worker-{task}": [(BEGIN + at, f"step {at} loss {5 / (at + 1)}") for at in range(10_000)] for task in range(2)
    }
    assert len(page(replace(content(), lines=lines))) < 200_000


def test_a_cluster_of_which_nothing_is_known_has_a_page() -> None:
    made = content(0.0)
    nothing = replace(made.report, tasks=[], machines=[], metrics={}, endpoints={}, run="", observed_at="")
    bare = Content("mnist", "local", "digits", "dev", nothing)
    assert Outline(page(bare)).open == []
    assert 'id="timeline"' not in page(bare)


@pytest.mark.parametrize("text", NASTY)
def test_what_a_task_prints_is_only_text(text: str) -> None:
    usual = Outline(page(content(50.0))).names()
    shown = page(replace(content(50.0, hostile=text), name=text, project=text, options={text: text}))
    shown.encode()
    nasty = Outline(shown)
    assert nasty.open == []
    assert nasty.names() == usual


def test_attributes_are_escaped_too() -> None:
    assert (
        element("a", "<b>", title='"<', hidden=True, open=False, id=None)
        == '<a title="&quot;&lt;" hidden>&lt;b&gt;</a>'
    )
