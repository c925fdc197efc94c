"""Programs for earlier versions of TensorFlow and Keras, seen by their source before they run. Pure.

What they end with is in `report.remedies`; each remedy there would cost a run.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..spec.cluster import ClusterSpec


class _OldKind(NamedTuple):
    """A kind of old program."""

    what: str
    source: re.Pattern[str]
    remedy: str


_TENSORFLOW_2_15 = (
    '`container={"image": "tensorflow/tensorflow:2.15.0"}`, or on `local` `requirements=["tensorflow==2.15.*"]` with Python 3.9 '
    "to 3.11"
)
_KERAS_2 = 'requirements=["tf_keras"], env={"TF_USE_LEGACY_KERAS": "1"}; `import keras` becomes `import tf_keras`'
_LINE = r"(?m)^[^#\n]*"

_KINDS = (
    _OldKind(
        "`tf.contrib` of TensorFlow 1",
        re.compile(_LINE + r"(?:\btf\.contrib\.|(?:import|from) tensorflow\.contrib\b)"),
        "TensorFlow 2 does not have it: the program has to be changed, or needs an image with TensorFlow 1",
    ),
    _OldKind(
        "Estimators, which TensorFlow 2.16 and later do not have",
        re.compile(
            _LINE
            + r"(?:\btf\.(?:compat\.v1\.)?estimator\.|model_to_estimator|tensorflow_estimator|import estimator\b|tensorflow_addons)"
        ),
        f"set {_TENSORFLOW_2_15}",
    ),
    _OldKind(
        "names of TensorFlow 1",
        re.compile(
            _LINE
            + r"\btf\.(?:Session|placeholder|app\.(?:run|flags)|ConfigProto|global_variables_initializer|layers\.\w+)\("
        ),
        "begin it with `import tensorflow.compat.v1 as tf; tf.disable_v2_behavior()`",
    ),
    _OldKind(
        "parts of Keras 2 that Keras 3 does not have",
        re.compile(
            _LINE
            + r"(?:(?:import|from) (?:tensorflow\.)?keras\.(?:engine|wrappers|utils\.np_utils|backend\.tensorflow_backend|layers\.core"
            r"|layers\.(?:recurrent|convolutional|embeddings|experimental)|optimizers\.legacy|experimental|preprocessing\.text)\b"
            r"|(?:import|from) tensorflow\.python\.keras\b|(?:import|from) keras_preprocessing\b|\bnp_utils\b|\.fit_generator\("
            r"|\btf\.keras\.(?:experimental|layers\.experimental|optimizers\.legacy|backend\.(?:get|set)_session)\b"
            r"|\bmulti_gpu_model\b|\bCuDNN(?:LSTM|GRU)\b|\.(?:predict_classes|predict_proba)\(|\boptimizers\.\w+\([^)\n]*\blr=)"
        ),
        f"set {_KERAS_2}",
    ),
)
_COMPAT = re.compile(
    r"(?:tensorflow\.compat\.v1|tensorflow\.compat import v1|tf\.compat\.v1) as tf\b|disable_v2_behavior\("
)
_KERAS_3_REFUSES = re.compile(_LINE + r"\b(?:MultiWorkerMirroredStrategy|ParameterServerStrategy\w*)\(")
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


def old_programs(sources: Iterable[tuple[str, str]]) -> list[str]:
    """A warning for each kind of old program; `sources` are the names and the texts of the Python files of the code."""
    seen: dict[str, list[str]] = {}
    strategies, fits, has_keras_2 = [], [], False
    remedies: Mapping[str, str] = {kind.what: kind.remedy for kind in _KINDS} | {_STRATEGIES: f"set {_KERAS_2}"}
    for name, text in sources:
        kinds = [kind.what for kind in _KINDS if kind.source.search(text)]
        if "names of TensorFlow 1" in kinds and _COMPAT.search(text):
            kinds.remove("names of TensorFlow 1")
        strategies += [name] if _KERAS_3_REFUSES.search(text) else []
        fits += [name] if _FIT.search(text) else []
        has_keras_2 = has_keras_2 or "tf_keras" in text
        for what in kinds:
            seen.setdefault(what, []).append(name)
    if strategies and fits and not has_keras_2 and not seen:
        seen[_STRATEGIES] = [*dict.fromkeys([*strategies, *fits])]
    return [f"code: {_files(names)} {what}. If it fails by that, {remedies[what]}" for what, names in seen.items()]


_STRATEGIES = "Keras' `fit` under a strategy that Keras 3 does not support there"


def _files(names: list[str]) -> str:
    more = (
        f" and {len(names) - 1} more files use"
        if len(names) > 2
        else f" and {names[1]} use"
        if len(names) > 1
        else " uses"
    )
    return names[0] + more
