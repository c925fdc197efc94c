"""The code of a cluster, from its folder to the update that submits its run."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from ..agent.model.run_spec import RunSpec
from ..agent.model.run_state import RunState
from ..errors import SpecError
from ..paths import output_files
from ..plan import command_check, legacy_keras
from ..plan.inventory import Inventory
from ..spec.backends import is_this_computer
from ..spec.cluster import ClusterSpec

if TYPE_CHECKING:
    from ..plan.code_bundle import Bundle

_TENSORFLOW = ("tensorflow", "tensorflow-cpu")
_MOST_READ = 256 * 1024


def not_shipped(inventory: Inventory) -> tuple[Path, ...]:
    """Files and folders that are not part of the code, although they are in its folder."""
    folders = (inventory.data_dir, inventory.train_dir)
    return (Path.cwd() / "__main__.py", *(Path(folder) for folder in folders if folder.startswith("/")))


def bundle(name: str, folder: Path, without: Sequence[Path]) -> "Bundle":
    """The code in a folder.

    Raises:
        BundleError: the folder cannot be shipped.
    """
    # The package that reads .gitignore takes long to load: only where code is shipped.
    from ..plan.code_bundle import collect

    return collect(name, folder, [*without, *output_files()])


def warnings(spec: ClusterSpec, run: RunSpec, code: "Bundle | None") -> list[str]:
    """What is likely to be wrong with the code and the command.

    Raises:
        SpecError: the command names a script that cannot be started.
    """
    return [*command_warnings(spec, run, code), *output_warnings(code), *(code.warnings if code else ())]


def output_warnings(code: "Bundle | None") -> list[str]:
    """Files in the code folder that this command writes: their names decide whether the next update ships them."""
    if code is None:
        return []
    excluded = {code.folder.resolve() / name for name in code.without}
    names = [path.name for path in output_files() if path in excluded]
    wrong = "is not shipped now, because this command writes to it"
    return [f"code: {name} {wrong}. List it in .tfdeployignore, or the next update starts a new run" for name in names]


def changed_files(cluster: Mapping[str, object], code: "Bundle | None", current: RunState | None) -> str:
    """How the code differs from that of the current run; empty where it does not, and where that code is not stored here."""
    if code is None or current is None or current.spec.code in ("", code.name):
        return ""
    from ..backends import code_archives
    from ..plan.code_bundle import changed_files as changed

    earlier = code_archives.load(cluster, current.spec.code)
    return changed(code, earlier) if earlier is not None else ""


def command_warnings(spec: ClusterSpec, run: RunSpec, code: "Bundle | None") -> list[str]:
    """What is likely to be wrong with a command, by the command and the files of the code.

    Raises:
        SpecError: it names a script that cannot be started.
    """
    read = partial(_text_of, code) if code else lambda _: None
    script = command_check.script_of(run.command, read)
    is_local = is_this_computer(spec.backend)
    wrong, remedy = (
        command_check.cannot_start(script, partial(_program_exists, spec) if is_local else None) if script else ("", "")
    )
    if wrong:
        raise SpecError(f"{spec.name}: command", wrong, remedy)
    found = (
        command_check.lost_flags(run, script),
        command_check.syntax_error(run.command, partial(_whole_text, code)),
        _old_program(spec, code) if code else "",
    )
    return [*filter(None, found)]


def _old_program(spec: ClusterSpec, code: "Bundle") -> str:
    """A warning about a program for an earlier TensorFlow than the tasks will have; empty for none."""
    if legacy_keras.is_decided(spec) or (is_this_computer(spec.backend) and not _has_keras_3()):
        return ""
    sources = ((name, _text_of(code, name)) for name in code.files if name.endswith(".py"))
    return legacy_keras.old_program((name, text[0]) for name, text in sources if text)


def _has_keras_3() -> bool:
    """Whether the TensorFlow of this machine includes Keras 3."""
    for package in _TENSORFLOW:
        with suppress(PackageNotFoundError):
            major, minor = version(package).split(".")[:2]
            return (int(major), int(minor)) >= (2, 16)
    return False


def _text_of(code: "Bundle", name: str) -> tuple[str, bool] | None:
    """The text of a file of the code, and whether it is executable."""
    file = code.shipped.get(os.path.normpath(name))
    return (file.content[:_MOST_READ].decode("utf-8", "replace"), file.executable) if file else None


def _whole_text(code: "Bundle | None", name: str) -> str:
    """The text of a file of the code; empty for a long one, and without a file."""
    found = _text_of(code, name) if code else None
    return found[0] if found and len(found[0].encode()) < _MOST_READ else ""


def _program_exists(spec: ClusterSpec, program: str) -> bool:
    """Whether the tasks on this machine find a program. What packages bring is not known yet."""
    if program.startswith("/"):
        return os.access(program, os.X_OK)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return bool(spec.requirements) or shutil.which(program, path=path) is not None


def store(cluster: Mapping[str, object], code: "Bundle | None", run: RunSpec, current: RunState | None) -> None:
    """Store the code of a new run, from where its submission reads it: the folder may change meanwhile."""
    if code is None or (current is not None and run.id in (current.spec.id, current.spec.content_id)):
        return
    from ..backends import code_archives
    from ..plan.code_bundle import archive

    code_archives.store(cluster, code.name, archive(code), current.spec.code if current else "")
