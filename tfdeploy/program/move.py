"""What an update does with a cluster that the stack's state has on other backends too: its run moves."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..agent.model.run_state import FAILED, STOPPED, RunState
from ..backends.backend import load
from ..backends.base import ClusterRef
from ..errors import SpecError
from ..identity import StoredCluster, StoredPlace, resource_prefix
from ..plan.inventory import Inventory
from ..plan.plan import Plan
from ..plan.run_id import is_same_content
from ..spec.cluster import ClusterSpec


@dataclass(frozen=True)
class Move:
    """The names of a cluster's resources, and the places that its run leaves."""

    prefix: str
    here: StoredPlace | None = None
    """What the state has of the cluster on the backend of the specification."""
    origins: tuple[StoredPlace, ...] = ()
    """Empty where no run moves."""
    lines: tuple[str, ...] = ()
    """What the update does, and how to return, in sentences."""

    @property
    def clusters(self) -> list[ClusterRef]:
        """The cluster at the places that its run leaves."""
        return [place.cluster for place in self.origins]

    @property
    def returns(self) -> bool:
        """Whether the run was here before, and what it has left here is not deleted: it has not trained where it moved to."""
        return self.here is not None and "run" in self.here.resources

    @property
    def token(self) -> str:
        """The token of the cluster, which stays: the ids of runs with a secret environment depend on it."""
        return next((place.token for place in self.origins if place.token), "")


def move_of(spec: ClusterSpec, stored: StoredCluster | None, clusters: Callable[[], list[str]]) -> Move:
    """The move to the backend of the specification; without origins where the cluster is there. `clusters` reads the names of all
    clusters in the stack.

    Raises:
        SpecError: runs cannot move between these backends, or the names are taken.
    """
    places = stored.places if stored else ()
    prefix = resource_prefix(spec.name, spec.backend, places, clusters)
    origins = tuple(place for place in places if place.cluster["backend"] != spec.backend)
    if origins:
        from ..backends.move_record import mover  # few updates move a run

        for backend in (*(place.cluster["backend"] for place in origins), spec.backend):
            mover(backend)
    return Move(prefix, stored.at(spec.backend) if stored else None, origins)


def described(move: Move, spec: ClusterSpec, plan: Plan, inventory: Inventory) -> Move:
    """The move with its sentences. It observes the places that the run leaves, and changes nothing there.

    Raises:
        SpecError: the run could not continue at the new place.
    """
    if not move.origins:
        return move
    runs = [(place, _run_at(place)) for place in move.origins]
    recorded = [(place, run) for place, run in runs if run is not None]
    newest = max(recorded, key=lambda item: item[1].moves, default=None)
    if newest is None and inventory.run is None and any("run" in place.resources for place in move.origins):
        wrong = f"the record of its run is on {_names(move)}, which this computer cannot read"
        raise SpecError(
            f"{spec.name}: backend", wrong, "Move it from the computer that has it, or destroy it there first."
        )
    if newest is None or (inventory.run is not None and inventory.run.moves >= newest[1].moves):
        sentence = f"the run continues on {spec.backend}, which has its newest record"
    else:
        _refuse(spec, plan, inventory, *newest, move.returns)
        sentence = _sentence(spec, plan, *newest)
    origin = move.origins[0].cluster["backend"]
    retained = "except checkpoints that `pulumi destroy` keeps"
    deleted = f"{sentence}; what is on {_names(move)} is deleted when it trains on {spec.backend}, {retained}"
    back = f"until then nothing there is deleted; to return: `pulumi config set tfdeploy:backend {origin} && pulumi up`"
    return replace(move, lines=(deleted, back))


def _run_at(place: StoredPlace) -> RunState | None:
    from ..agent.record.record import ViewRequest

    cluster = place.cluster
    return load(cluster["backend"]).runner.observe(cluster, "", ViewRequest(events=1), is_preview=True).view.run_state


def _names(move: Move) -> str:
    return " and ".join(cluster["backend"] for cluster in move.clusters)


def _refuse(
    spec: ClusterSpec, plan: Plan, inventory: Inventory, place: StoredPlace, run: RunState, returns: bool
) -> None:
    """Refuse a run that failed, unless it returns to its former place, and checkpoints that cannot be moved."""
    from ..backends.move_checks import failed_run, refuse_without_checkpoint

    origin = place.cluster["backend"]
    if not is_same_content(run.spec, plan.run):
        return
    if run.result is not None and run.result.state == FAILED and not returns:
        raise failed_run(f"{spec.name}: backend", run, spec.backend)
    former, base = run.spec.train_dir, inventory.train_dir
    if "://" in base and "://" not in former:
        wrong = f"the run cannot continue at {base} from its checkpoints in {former} on {origin}"
        raise SpecError(f"{spec.name}: train_dir", wrong, "Remove it, or use a folder.")
    if "://" not in former:
        refuse_without_checkpoint(spec.name, run, origin)


def _sentence(spec: ClusterSpec, plan: Plan, place: StoredPlace, run: RunState) -> str:
    """What happens with the run of the newest record. One that has failed returns: others were refused."""
    from ..backends.move_checks import without_checkpoint

    ways = f"from {place.cluster['backend']} to {spec.backend}"
    if not is_same_content(run.spec, plan.run):
        return f"the record moves {ways}: run {run.spec.id} is stopped there, and another one starts"
    if run.result is not None and run.result.state not in (STOPPED, FAILED):
        return f"the record of the run moves {ways}: the run is finished, and nothing starts"
    without = "" if "://" in run.spec.train_dir else f"; {without_checkpoint('nothing is deleted')}"
    return f"the run moves {ways}: it is stopped there, and continues from its newest checkpoint{without}"
