"""What an update does with a run when it replaces machines. Pure."""

from dataclasses import dataclass

from ..agent.json_data import JsonData


@dataclass(frozen=True)
class Replacement(JsonData):
    """An update replaces machines of a run: before that it is stopped, and its record is brought to this computer. It continues on the
    new machines."""

    machines: tuple[str, ...] = ()
    """The ids of the machines. Empty where an earlier update has stopped the run, and has not submitted it again."""
    keeps_train_dir: bool = False
    """Whether the new machines see the run's `train_dir` too."""
    continues: bool = True
    """Whether this run, or one that resumes it, is submitted then."""
