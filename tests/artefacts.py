"""Where tests leave what somebody may want to look at afterwards."""

import os
from pathlib import Path

VARIABLE = "TFDEPLOY_TEST_ARTEFACTS"


def artefacts() -> Path:
    """`build/artefacts` of the checkout, or the folder that `TFDEPLOY_TEST_ARTEFACTS` names; it is created."""
    folder = Path(os.environ.get(VARIABLE) or Path(__file__).parents[1] / "build" / "artefacts")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
