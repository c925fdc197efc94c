"""The final id of a run with secret variables, and what the update refuses that only it knows."""

from typing import Any

import pytest

from tests.unit.cases import plan
from tfdeploy.errors import SpecError
from tfdeploy.resources import _final
from tfdeploy.spec.environment import SecretText

CANARY = "canary-91b2aa"


def final(values: dict[str, Any], secret_env: bool = True, token: str = "t" * 32) -> dict[str, Any]:
    """The run that the controller gets, where `KEY` is a variable of `env` or one of `secrets`."""
    args: dict[str, Any] = {"env": {"KEY": SecretText("")}} if secret_env else {}
    run = plan(workers=1, **args).run.to_dict()
    return dict(_final({"cluster": {"name": "mnist"}, "token": token, "run": run, "secrets": values})["run"])


def test_a_secret_variable_counts_in_the_runs_name_by_the_clusters_token() -> None:
    ids = [final({"KEY": CANARY})["id"], final({"KEY": "other"})["id"], final({"KEY": CANARY}, token="u" * 32)["id"]]
    assert len({*ids, plan(workers=1, env={"KEY": SecretText("")}).run.id}) == 4
    assert final({"KEY": CANARY}) == final({"KEY": CANARY, "FILE": "does not count"})
    assert CANARY not in str(final({"KEY": CANARY}))


def test_secrets_do_not_count() -> None:
    assert final({"KEY": CANARY}, secret_env=False)["id"] == plan(workers=1).run.id


@pytest.mark.parametrize("secret_env", [False, True])
@pytest.mark.parametrize("value", [7, None, [CANARY], {"a": CANARY}, f"{CANARY}\0", CANARY * 20_000])
def test_an_output_that_is_not_a_valid_secret_is_refused_without_showing_it(secret_env: bool, value: Any) -> None:
    with pytest.raises(SpecError, match=r"mnist: (env|secrets)\.KEY: ") as refusal:
        final({"KEY": value}, secret_env)
    assert CANARY not in str(refusal.value)
