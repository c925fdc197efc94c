"""Where the user's own state folder keeps what is known of clusters."""

import datetime
import os
from pathlib import Path


def state_folder() -> Path:
    """The user's state folder for tfdeploy: `$XDG_STATE_HOME/tfdeploy`, by default `~/.local/state/tfdeploy`."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "tfdeploy"


def cache_folder() -> Path:
    """The user's cache folder for tfdeploy: `$XDG_CACHE_HOME/tfdeploy`, by default `~/.cache/tfdeploy`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tfdeploy"


def put_by(home: Path, *parts: Path) -> str:
    """Move what a cluster leaves (`parts`, in its folder `home`) to where nothing replaces it; where to, or "" for nothing."""
    worth = [path for path in parts if path.exists() and any(path.iterdir())]
    if not worth:
        return ""
    moment = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    # The state folder that this home lies in, whatever the environment says today.
    kept = home.parent.parent / "kept" / home.name / moment
    kept.mkdir(parents=True)
    for path in worth:
        path.rename(kept / path.name)
    return str(kept)
