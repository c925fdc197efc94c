"""The code of a cluster, from its folder to the update that submits its run."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import pulumi

from .agent.run_spec import RunSpec
from .agent.run_state import RunState
from .paths import output_files
from .plan.inventory import Inventory

if TYPE_CHECKING:
    from .plan.code_bundle import Bundle


def not_shipped(inventory: Inventory) -> tuple[Path, ...]:
    """Files and folders that are not part of the code, although they are in its folder."""
    folders = (inventory.data_dir, inventory.train_dir)
    return (Path.cwd() / "__main__.py", *(Path(folder) for folder in folders if folder.startswith("/")))


def bundle(name: str, folder: Path, without: Sequence[Path]) -> "Bundle":
    """The code in a folder. An update keeps the content that was hashed.

    Raises:
        BundleError: the folder cannot be shipped.
    """
    # The package that reads .gitignore takes long to load: only where code is shipped.
    from .plan.code_bundle import collect

    is_update = not pulumi.runtime.is_dry_run()
    return collect(name, folder, [*without, *output_files()], with_content=is_update)


def output_warnings(code: "Bundle | None") -> list[str]:
    """Files in the code folder that this command writes: their names decide whether the next update ships them."""
    if code is None:
        return []
    from .plan.code_bundle import is_ignored

    inside = [path for path in output_files() if code.folder.resolve() in path.parents]
    names = [path.name for path in inside if not is_ignored(code.folder, path)]
    wrong = "is not shipped now, because this command writes to it"
    return [f"code: {name} {wrong}. List it in .tfdeployignore, or the next update starts a new run" for name in names]


def changed_files(code: "Bundle | None", current: RunState | None) -> str:
    """How the code differs from that of the current run; empty where it does not, and where that code is not stored here."""
    if code is None or current is None or current.spec.code in ("", code.name):
        return ""
    from . import receipts
    from .plan.code_bundle import changed_files as changed

    earlier = receipts.load_code(current.spec.code)
    with suppress(OSError, BadZipFile):
        return changed(code, earlier) if earlier is not None else ""
    return ""


def store(code: "Bundle | None", run: RunSpec, current: RunState | None) -> None:
    """Store the code of a new run, from where its submission reads it: the folder may change meanwhile."""
    if code is None or (current is not None and run.id in (current.spec.id, current.spec.content_id)):
        return
    from . import receipts
    from .plan.code_bundle import archive

    receipts.store_code(code.name, archive(code))
