"""A warning about what TensorFlow 2.16 and later, with Keras 3, cannot run, by the source of a program. Pure.

What such programs end with, and many more, is in `report.remedies`; the remedy there costs a run.
"""

import re
from collections.abc import Iterable

from ..spec.cluster import ClusterSpec

_TENSORFLOW_2_15 = (
    '`container={"image": "tensorflow/tensorflow:2.15.0"}`, or on `local` `requirements=["tensorflow==2.15.*"]` with Python 3.9 '
    "to 3.11"
)
_KERAS_2 = 'requirements=["tf_keras"], env={"TF_USE_LEGACY_KERAS": "1"}; `import keras` becomes `import tf_keras`'
_LINE = r"(?m)^[^#\n]*"
_CONTRIB = re.compile(_LINE + r"(?:\btf\.contrib\.|(?:import|from) tensorflow\.contrib\b)")
_ESTIMATOR = re.compile(
    _LINE
    + r"(?:\btf\.(?:compat\.v1\.)?estimator\.|model_to_estimator|tensorflow_estimator|import estimator\b|tensorflow_addons)"
)
_STRATEGY = re.compile(_LINE + r"\b(?:MultiWorkerMirroredStrategy|ParameterServerStrategy\w*)\(")
_FIT = re.compile(_LINE + r"\.fit\(")
_HAS_KERAS_2 = re.compile(
    r"\s*(?:tf[_-]keras|tensorflow(?:-cpu|-gpu)?\s*(?:[=~]=\s*(?:1|2\.(?:\d|1[0-5]))\b|<))", re.IGNORECASE
)


def is_decided(spec: ClusterSpec) -> bool:
    """Whether the user has chosen a version of TensorFlow or Keras: then no other one is advised."""
    variables = [spec.env, *(job.env for job in spec.jobs)]
    has_image = bool(spec.container.image or spec.container.build or any(job.container.image for job in spec.jobs))
    return (
        has_image
        or any("TF_USE_LEGACY_KERAS" in names for names in variables)
        or any(_HAS_KERAS_2.match(line) for line in spec.requirements)
    )


def old_program(sources: Iterable[tuple[str, str]]) -> str:
    """A warning about an old program; empty for none. `sources` are the names and the texts of the Python files of the code."""
    contrib, estimators, strategies, fits, has_keras_2 = [], [], [], [], False
    for name, text in sources:
        contrib += [name] if _CONTRIB.search(text) else []
        estimators += [name] if _ESTIMATOR.search(text) else []
        strategies += [name] if _STRATEGY.search(text) else []
        fits += [name] if _FIT.search(text) else []
        has_keras_2 = has_keras_2 or "tf_keras" in text
    if contrib:
        what = "`tf.contrib` of TensorFlow 1"
        return _warning(contrib, what, "the program has to be changed, or needs an image with TensorFlow 1")
    if estimators:
        what = "Estimators, which TensorFlow 2.16 and later do not have"
        return _warning(estimators, what, f"set {_TENSORFLOW_2_15}")
    if strategies and fits and not has_keras_2:
        what = "Keras' `fit` under a strategy that Keras 3 does not support there"
        return _warning([*dict.fromkeys([*strategies, *fits])], what, f"set {_KERAS_2}")
    return ""


def _warning(names: list[str], what: str, remedy: str) -> str:
    more = " uses"
    if len(names) == 2:
        more = f" and {names[1]} use"
    elif len(names) > 2:
        more = f" and {len(names) - 1} more files use"
    return f"code: {names[0]}{more} {what}. If it fails by that, {remedy}"
