"""The user's own copy of a cluster's record: brought on at each look, kept when the cluster is gone."""

import shutil
from contextlib import suppress
from typing import Any

from ...agent import copying
from ...agent.protocol import CallError
from ...agent.record import Record
from ...agent.workplace import held
from ..base import Cluster
from ..folders import cluster_folder, put_by, state_folder
from ..keeping import Keeper


class Mirror:
    """The copy of one cluster's record; nothing is made by asking for it."""

    def __init__(self, cluster: Cluster) -> None:
        self.home = (
            state_folder() / cluster["backend"] / cluster_folder(cluster["project"], cluster["stack"], cluster["name"])
        )
        self.folder = self.home / "record"
        self.record = Record(self.folder)

    def bring_on(self, keeper: Keeper) -> dict[str, Any]:
        """Bring it on to the keeper's record; the keeper's last answer (see `copying.beyond`).

        Raises:
            OSError, CallError: the keeper does not answer, or with a no.
        """
        with held(self.home):
            return copying.bring_on(self.record, lambda ask: keeper.json("POST", "/copy", ask), self._begin_anew)

    def bring_all(self, keeper: Keeper) -> None:
        """Bring on the accounts of earlier runs too."""
        with held(self.home):
            copying.bring_all(self.record, lambda ask: keeper.json("POST", "/copy", ask))

    def bring_home(self, keeper: Keeper) -> None:
        """Bring on all of it, as far as the keeper answers."""
        with suppress(OSError, CallError):
            self.bring_on(keeper)
            self.bring_all(keeper)

    def end(self) -> str:
        """Put the record by and forget the cluster; where it is kept, in a sentence."""
        kept = self.put_by()
        self.forget()
        return f"the record is kept in {kept}" if kept else ""

    def _begin_anew(self) -> None:
        self.put_by()
        self.record = Record(self.folder)

    def put_by(self) -> str:
        """Move it to where nothing replaces it; where to, or "" when there was nothing."""
        has_runs = self.record.runs()
        kept = put_by(self.home, self.folder) if has_runs else ""
        shutil.rmtree(self.folder, ignore_errors=True)
        return kept

    def forget(self) -> None:
        """Remove what is left of its folder."""
        shutil.rmtree(self.home, ignore_errors=True)
