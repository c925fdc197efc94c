"""What an update does with a run when it replaces machines. Pure."""

from dataclasses import dataclass

from ..agent.json_data import JsonData


@dataclass(frozen=True)
class Replacement(JsonData):
    """An update replaces machines of a run: before that it is stopped, and its record is brought to this computer. It continues on the
    new machines."""

    machines: tuple[str, ...] = ()
    """The ids of the machines. Empty where an earlier update has brought the record, and has not seen the run train since."""
    origin: str = ""
    """What is replaced, such as a type of machines."""
    place: str = ""
    """What replaces it."""
    keeps_train_dir: bool = False
    """Whether the new machines see the run's `train_dir` too."""
    continues: bool = True
    """Whether this run, or one that resumes it, is submitted then."""
