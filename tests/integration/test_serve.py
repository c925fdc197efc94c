"""The page about serving: a second cluster takes the model of the first, and the next model in its place."""

import pytest

from tests.http_server import fetched
from tests.integration.conftest import ROOT, Project
from tests.pages import blocks
from tests.waiting import until

PAGE = ROOT / "docs" / "how-to" / "models.md"

TRAINS = """\
import os, pathlib
folder = pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"], "export", "1")
folder.mkdir(parents=True)
(folder / "saved_model.pb").write_text({model!r})
"""

SERVES = """\
import argparse, http.server, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int)
parser.add_argument("--model", type=pathlib.Path)
options, _ = parser.parse_known_args()
model = (options.model / "saved_model.pb").read_bytes()

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(model)

http.server.HTTPServer(("127.0.0.1", options.port), Handler).serve_forever()
"""


def url(project: Project) -> str:
    """The server's URL; one at which nothing is while it has none."""
    return f"http://{project.shown('server')['endpoints'].get('worker-0', '127.0.0.1:9')}/"


@pytest.mark.full
def test_the_server_has_the_newest_model_and_ends_with_the_stack(project: Project) -> None:
    program = next(block for block in blocks(PAGE, "python") if "depends_on" in block.text)
    project.write("", program=program.text)
    for name, script in {"train": "", "serve": SERVES}.items():
        (project.program / name).mkdir()
        (project.program / name / f"{name}.py").write_text(script)
    project.init()
    for model in ("first", "second"):
        (project.program / "train" / "train.py").write_text(TRAINS.format(model=model))
        project.up()
        until(lambda model=model: fetched(url(project)) == model.encode(), f"the {model} model is served")  # type: ignore[misc]
    former = url(project)
    assert fetched(former)
    project.destroy()
    assert not fetched(former)
