"""Programs that TensorFlow 2.16 and later cannot run are seen by their source."""

from typing import Any

import pytest

from tests.unit.cases import spec
from tfdeploy.plan.legacy_keras import is_decided, old_program

OLD = {
    "tf.contrib": ["x = tf.contrib.layers.fully_connected(a)", "from tensorflow.contrib import slim"],
    "Estimators": [
        "import tensorflow.compat.v1 as tf\ntf.estimator.RunConfig()",
        "e = tf.estimator.Estimator(f)",
        "from tensorflow import estimator",
        "import tensorflow_addons as tfa",
    ],
    "Keras' `fit`": ["s = tf.distribute.MultiWorkerMirroredStrategy()\nmodel.fit(x)"],
}
NEW = [
    "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\ntf.Session()",
    "# tf.contrib.layers and tf.Session() were here",
    "s = tf.distribute.MultiWorkerMirroredStrategy()\nstrategy.run(step)",
    "import tf_keras\ns = tf.distribute.MultiWorkerMirroredStrategy()\nmodel.fit(x)",
    "s = tf.distribute.MirroredStrategy()\nmodel.fit(x)",
]


@pytest.mark.parametrize(("kind", "source"), [(kind, source) for kind, sources in OLD.items() for source in sources])
def test_an_old_program_is_warned_of_once_with_what_it_will_need(kind: str, source: str) -> None:
    warning = old_program([("a.py", source), ("b.py", "print(1)"), ("c.py", source)])
    assert warning.startswith("code: a.py and c.py use ")
    assert kind in warning


@pytest.mark.parametrize("source", NEW)
def test_another_program_is_not_warned_of(source: str) -> None:
    assert old_program([("a.py", source)]) == ""


def test_there_is_one_warning_for_all_files() -> None:
    files = [(f"{place}.py", sources[0]) for place, sources in enumerate(OLD.values())]
    assert old_program(files).startswith("code: 0.py uses `tf.contrib`")
    assert old_program(files[1:]).startswith("code: 1.py uses Estimators")
    assert old_program([("a.py", files[1][1])] * 4).startswith("code: a.py and 3 more files use Estimators")


def test_strategy_and_fit_may_be_in_two_files() -> None:
    strategy, fit = OLD["Keras' `fit`"][0].split("\n")
    assert old_program([("fit.py", fit)]) == ""
    warning = old_program([("fit.py", fit), ("a.py", "print(1)"), ("main.py", strategy)])
    assert warning.startswith("code: main.py and fit.py use Keras' `fit`")
    assert old_program([("fit.py", f"import tf_keras\n{fit}"), ("main.py", strategy)]) == ""


@pytest.mark.parametrize(
    ("args", "decided"),
    [
        ({}, False),
        ({"env": {"TF_USE_LEGACY_KERAS": "1"}}, True),
        ({"jobs": {"worker": {"env": {"TF_USE_LEGACY_KERAS": "0"}}}}, True),
        ({"requirements": ["tf_keras"]}, True),
        ({"requirements": ["tensorflow==2.15.*"]}, True),
        ({"requirements": ["tensorflow==2.20.0", "pandas"]}, False),
        ({"container": {"image": "mine"}}, True),
    ],
)
def test_a_version_that_the_user_has_chosen_is_not_questioned(args: dict[str, Any], decided: bool) -> None:
    assert is_decided(spec(workers=1, **args)) == decided
