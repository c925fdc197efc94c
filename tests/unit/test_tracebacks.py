"""In the processes that Pulumi starts, errors of tfdeploy are sentences."""

import errno
import subprocess
import sys

import pytest

from tfdeploy.errors import file_error

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

for error in (BackendError("the engine does not respond"), KeyError("x")):
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


def test_the_process_of_the_dynamic_resources_reports_errors_without_tracebacks() -> None:
    done = run(PLUGIN)
    assert done.stdout.replace("\n]", "]").splitlines() == [
        "[tfdeploy.errors.BackendError: the engine does not respond]",
        "[KeyError: 'x']",
    ], done.stderr
    assert run(PLUGIN, debug="1").stdout.count("Traceback") == 2


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


def test_an_error_of_a_file_is_a_sentence() -> None:
    assert file_error(OSError(errno.EACCES, "Permission denied", "/state/x")) == "/state/x: Permission denied."
    assert file_error(OSError(errno.ENOSPC, "No space left on device")).startswith(
        "a file: No space left on device. Free"
    )
    assert file_error(OSError("closed")) == "a file: closed."
