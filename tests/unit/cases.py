"""What the unit tests make their cases from: a machine, specs, plans, and texts kept in files."""

import os
from pathlib import Path
from typing import Any

from tfdeploy.placement import Machine
from tfdeploy.plan import Given, Plan, make_plan
from tfdeploy.spec import ClusterSpec, cluster_spec

BOX = Machine("box", "Master", "local", "", cpus=8.0, memory=16 * 1024**3, gpus=("0", "1"))
"""The one machine that plans are made for."""

_GOLDENS = Path(__file__).parent / "goldens"


def spec(name: str = "mnist", **args: Any) -> ClusterSpec:
    """A spec; the command is `python train.py` unless the arguments say otherwise, or the tasks serve."""
    return cluster_spec(name, args if args.get("serve") else {"command": ["python", "train.py"], **args})


def plan(name: str = "mnist", code: str = "", **args: Any) -> Plan:
    """A plan on the one machine."""
    asked = spec(name, **args)
    return make_plan(asked, [BOX], Given(code, asked.train_dir or "/train", asked.data_dir))


def check_golden(name: str, text: str) -> None:
    """Compare with the text kept in `goldens/`; RENEW_GOLDENS=1 writes it anew, for a person to read in the diff."""
    path = _GOLDENS / f"{name}.txt"
    if os.environ.get("RENEW_GOLDENS"):
        path.write_text(text + "\n")
    assert text + "\n" == path.read_text()
