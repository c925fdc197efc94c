"""In the processes that Pulumi starts, errors of tfdeploy are sentences."""

import errno
import subprocess
import sys

import pytest

from tfdeploy.errors import file_error

PLUGIN = """
import importlib.util, traceback
__spec__ = importlib.util.find_spec("pulumi.dynamic.__main__")

import tfdeploy
from tfdeploy.errors import BackendError

try:
    raise BackendError("the engine does not respond")
except BackendError:
    print(traceback.format_exc())
"""
"""What the process of the dynamic resources sends of an error."""


def run(code: str, *arguments: str, debug: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env={"TFDEPLOY_DEBUG": debug}, check=False, timeout=60
    )


def test_the_process_of_the_dynamic_resources_reports_sentences() -> None:
    assert run(PLUGIN).stdout.strip() == "tfdeploy.errors.BackendError: the engine does not respond"
    assert run(PLUGIN, debug="1").stdout.startswith("Traceback")


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
