"""The view of a record whose original is at a controller, and whose copy is on this computer."""

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from ..agent.record.record import RecordView, ViewRequest
from ..agent.transport.rpc import CallError
from ..errors import BackendError, Forbidden, Unreachable
from . import controller_calls
from .base import CONTROLLER, ClusterRef, EngineTask, Retain
from .controller_calls import ControllerApi
from .record_copy import RecordCopy, RecordCopyError, RecordLost

_log = logging.getLogger(__name__)

DELETE_UNREACHABLE = "TFDEPLOY_DELETE_UNREACHABLE"
"""Set to 1, `pulumi destroy` succeeds although the engine does not respond."""


def observed_view(
    controller: ControllerApi,
    record_copy: RecordCopy,
    engine: Mapping[str, EngineTask] | None,
    query: ViewRequest,
    is_preview: bool,
    problems: list[str],
) -> tuple[RecordView, float | None]:
    """The view of the record, brought up to date where the controller responds; otherwise since when it does not. A preview gets
    the controller's own view, because it writes nothing. A controller that has lost the record, or that the user may not call, is one
    of the `problems`."""
    try:
        if engine is not None and CONTROLLER not in engine:
            raise Unreachable("the controller does not exist")
        if is_preview:
            return controller_calls.view(controller, query), None
        try:
            update = record_copy.update(controller)
        except RecordCopyError as error:
            _warn(str(error))
            return controller_calls.view(controller, query), None
    except (OSError, CallError) as error:
        problems += [str(error)] if isinstance(error, (RecordLost, Forbidden)) else []
        record = record_copy.record
        return record.view(query, record.current()), record.last_alive()
    view = record_copy.record.view(query, update.run_state)
    return replace(view, at=update.at or view.at), None


def refuse_loss(cluster: ClusterRef, record_copy: RecordCopy, retain: Retain) -> None:
    """Refuse to delete the only copy of artifacts, unless the user says so."""
    missing = "" if retain.get("is_elsewhere") else record_copy.missing_artifacts()
    if missing and os.environ.get(DELETE_UNREACHABLE) != "1":
        raise BackendError(
            f"{cluster['name']}: the controller does not respond, and {missing}. Nothing is deleted. Run `pulumi destroy` again when "
            f"it does (`tfdeploy explain` shows why it does not). `{DELETE_UNREACHABLE}=1 pulumi destroy` deletes them"
        )


@cache
def _warn(text: str) -> None:
    """Print a warning, once in a process."""
    _log.warning("Warning: %s", text)
