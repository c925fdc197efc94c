"""What a preview says of a move, and what it refuses before anything is created."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.clusters import ID, OWNER, cluster_ref
from tests.unit.cases import inventory, plan, spec
from tfdeploy.agent.model.run_state import (
    FAILED,
    MOVED,
    STOP_REQUESTED,
    STOPPED,
    SUCCEEDED,
    TASK_FAILED,
    RunResult,
    RunState,
)
from tfdeploy.errors import SpecError
from tfdeploy.identity import Identity, StoredCluster, StoredPlace
from tfdeploy.plan.inventory import PlaceRef
from tfdeploy.plan.plan import make_plan
from tfdeploy.program import move as moves

HERE: PlaceRef = {"id": "m1", "name": "laptop"}
LOCAL = StoredPlace("mnist", cluster_ref("local", "/home"), HERE, "token", frozenset({"run"}))
DOCKER = StoredPlace("mnist-docker", cluster_ref("docker"), HERE, "token", frozenset({"network", "run"}))
SPEC = spec(workers=1, backend="docker")
RUN = replace(plan(workers=1).run, train_dir="/former/run", artifacts=["**/checkpoint"])

Lines = Callable[..., tuple[str, ...]]


def run(result: str = "", cause: str = STOP_REQUESTED, moves: int = 0, **changed: Any) -> RunState:
    state = RunState(replace(RUN, **changed), 1.0, moves=moves)
    state.result = RunResult(result, cause, 2.0) if result else None
    return state


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Lines:
    """The sentences of a move; `there` is the run at the former place, `own` that of the new one."""

    def described(there: RunState | None, own: RunState | None = None, **args: Any) -> tuple[str, ...]:
        monkeypatch.setattr(moves, "_run_at", lambda _: there)
        asked = spec(**{"workers": 1, "backend": "docker", **args})
        resolved = inventory(asked, run=own)
        places = (LOCAL, DOCKER) if own else (LOCAL,)
        move = moves.move_of(asked, StoredCluster(Identity(ID, OWNER), places), lambda: ["mnist"])
        return moves.described(move, asked, make_plan(asked, resolved), resolved).lines

    return described


@pytest.mark.parametrize("there", [run(), run(STOPPED), run(STOPPED, MOVED)], ids=["trains", "by the user", "moved"])
def test_a_run_that_is_not_finished_moves(lines: Lines, there: RunState) -> None:
    moves, returns = lines(there)
    assert moves.startswith(
        "the run moves from local to docker: it is stopped there, and continues from its newest checkpoint; "
    )
    assert moves.endswith(
        "; what is on local is deleted when it trains on docker, except checkpoints that `pulumi destroy` keeps"
    )
    assert returns.endswith("to return: `pulumi config set tfdeploy:backend local && pulumi up`")


def test_a_finished_run_and_another_one_are_named_as_such(lines: Lines) -> None:
    assert "the run is finished, and nothing starts" in lines(run(SUCCEEDED))[0]
    assert f"run {RUN.id} is stopped there, and another one starts" in lines(run(), run_id="another")[0]
    assert f"run {RUN.id} is stopped there" in lines(run(FAILED), run_id="another")[0]


def test_a_run_returns_to_the_newest_record(lines: Lines) -> None:
    own = run(STOPPED, MOVED)
    assert "the run continues on docker, which has its newest record" in lines(run(), own)[0]
    assert "the run moves from local to docker" in lines(run(moves=1), own)[0]
    assert "continues from its newest checkpoint" in lines(run(FAILED, TASK_FAILED, moves=1), own)[0]
    assert "the run is finished, and nothing starts" in lines(run(SUCCEEDED, moves=1), own)[0]


def test_what_cannot_continue_is_refused(lines: Lines) -> None:
    with pytest.raises(SpecError, match=f"the run {RUN.id} has failed, and a failed run does not continue on docker"):
        lines(run(FAILED, TASK_FAILED))
    with pytest.raises(SpecError, match=r"cannot continue at s3://bucket from its checkpoints in .* on local"):
        lines(run(), train_dir="s3://bucket")
    with pytest.raises(SpecError, match="`artifacts` is empty"):
        lines(run(artifacts=[]))
    with pytest.raises(
        SpecError, match="`artifacts` is empty, so that the checkpoints in /tfdeploy/train/run on local would be"
    ):
        lines(run(artifacts=[], train_dir="/tfdeploy/train/run"))
    for patterns in (["**/saved_model.pb"], ["*.csv", "logs/out.txt"]):
        with pytest.raises(SpecError, match="`artifacts` names no checkpoint and no weights"):
            lines(run(artifacts=patterns))
    for patterns in (["export/**"], ["*"], ["**/model.ckpt*"], ["state.npz"], ["saved"], ["*.csv", "**/checkpoint"]):
        assert "without one the update fails, and nothing is deleted" in lines(run(artifacts=patterns))[0]
    lines(run(artifacts=[], train_dir="s3://bucket/run"), train_dir="s3://bucket")
    with pytest.raises(SpecError, match="which this computer cannot read"):
        lines(None)


def test_a_user_may_let_a_run_begin_again(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFDEPLOY_WITHOUT_CHECKPOINT", "1")
    assert "; without one it begins again at step 0; " in lines(run(artifacts=[]))[0]
    at_url = run(train_dir="s3://bucket/run")
    assert "without one" not in lines(at_url, train_dir="s3://bucket")[0], "it stays where it is"


def test_a_cluster_that_stays_has_no_sentence_and_keeps_its_names() -> None:
    stored = StoredCluster(Identity(ID, OWNER), (DOCKER,))
    move = moves.move_of(SPEC, stored, lambda: ["mnist"])
    assert (move.prefix, move.origins, move.token, move.clusters) == ("mnist-docker", (), "", [])
    assert moves.described(move, SPEC, plan(workers=1), inventory(SPEC)) == move
    assert moves.move_of(SPEC, None, list).prefix == "mnist"
