"""In the processes that Pulumi starts, errors of tfdeploy are sentences."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from tfdeploy.errors import BackendError, file_error
from tfdeploy.program import tracebacks

PLUGIN = """
import ast, importlib.util, sys, traceback
import grpc

# The function of Pulumi's process through which all errors go, without the server that its module starts.
__spec__ = importlib.util.find_spec("pulumi.dynamic.__main__")
for node in ast.parse(open(__spec__.origin).read()).body:
    if getattr(node, "name", "") == "_abort_with_traceback":
        exec(compile(ast.Module([node], []), "plugin", "exec"))

import tfdeploy
from tfdeploy.errors import BackendError

class Aborted(Exception):
    pass

class Context:
    def abort(self, code, text):
        raise Aborted(text)

for error in (
    BackendError("the engine does not respond"), OSError(28, "No space left on device", "/state/x"), KeyError("x")
):
    def act(self, request, context):
        raise error
    try:
        _abort_with_traceback(act)(None, None, Context())
    except Aborted as aborted:
        print(f"[{aborted}]")
"""


def run(code: str, *arguments: str, debug: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env={"TFDEPLOY_DEBUG": debug}, check=False, timeout=60
    )


def test_the_process_of_the_dynamic_resources_reports_sentences() -> None:
    done = run(PLUGIN)
    sentences, _, rest = done.stdout.partition("[Traceback")
    assert sentences.splitlines() == [
        "[the engine does not respond]",
        "[/state/x: No space left on device. Free space on that disk, and run the command again.]",
    ], done.stderr
    assert "KeyError: 'x'" in rest
    assert run(PLUGIN, debug="1").stdout.count("Traceback") == 3


INTERRUPTED = "import tfdeploy; raise {error}"


@pytest.mark.parametrize(
    ("program", "error", "silent"),
    [
        ("pulumi-language-python-exec", "KeyboardInterrupt", True),
        ("pulumi-language-python-exec", "KeyError", False),
        ("mine", "KeyboardInterrupt", False),
    ],
)
def test_a_program_that_pulumi_interrupts_prints_no_traceback(program: str, error: str, silent: bool) -> None:
    done = run(INTERRUPTED.format(error=error), program)
    assert done.returncode != 0
    assert ("Traceback" not in done.stderr) == silent


@pytest.mark.parametrize(("error", "output"), [("KeyboardInterrupt", ""), ("KeyError", "reported KeyError\n")])
def test_the_hook_of_a_program_gets_the_other_errors(error: str, output: str) -> None:
    hook = "import sys; sys.excepthook = lambda kind, *_: print('reported', kind.__name__); "
    done = run(hook + INTERRUPTED.format(error=error), "pulumi-language-python-exec")
    assert (done.stdout, done.stderr) == (output, "")


def test_an_error_of_a_file_is_a_sentence() -> None:
    assert file_error(OSError(errno.EACCES, "Permission denied", "/state/x")) == "/state/x: Permission denied."
    assert file_error(OSError(errno.ENOSPC, "No space left on device")).startswith(
        "a file: No space left on device. Free"
    )
    assert file_error(OSError("closed")) == "a file: closed."


def test_only_errors_on_purpose_are_sentences(tmp_path: Path) -> None:
    assert tracebacks.text_of(BackendError("no")) == "no"
    assert tracebacks.text_of(FileNotFoundError(errno.ENOENT, "No such file", str(tmp_path))) == ""
    assert tracebacks.text_of(None) == ""
