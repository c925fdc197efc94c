"""What comes after training: the trained model, exported and tried on digits it never saw."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import tensorflow.compat.v1 as tf

import model
from digits import Digits


@dataclass(frozen=True)
class Score:
    """How the model does on the held-out digits."""

    loss: float
    accuracy: float


def trained_steps(train_dir: Path) -> int | None:
    """The global step of the newest checkpoint; None when there is none."""
    checkpoint = tf.train.latest_checkpoint(str(train_dir))
    return int(tf.train.load_variable(checkpoint, "global_step")) if checkpoint else None


def evaluate_and_export(train_dir: Path, hidden_units: int, digits: Digits) -> Score:
    """Score the newest checkpoint and write it as a SavedModel to `train_dir`/export.

    It all happens in this process: the other tasks may be gone by now.
    """
    with tf.Graph().as_default(), tf.Session() as session:
        network = model.build(hidden_units)
        tf.train.Saver().restore(session, tf.train.latest_checkpoint(str(train_dir)))
        export(session, network, train_dir / "export")
        held_out = {network.images: digits.x_test, network.labels: digits.y_test}
        loss, accuracy = session.run([network.loss, network.accuracy], held_out)
    return Score(float(loss), float(accuracy))


def export(session: tf.Session, network: model.Model, target: Path) -> None:
    """Write the SavedModel beside its place first, so that `target` is never half a model."""
    with tempfile.TemporaryDirectory(prefix="export-", dir=target.parent) as scratch:
        fresh, former = Path(scratch, "fresh"), Path(scratch, "former")
        tf.saved_model.simple_save(
            session,
            str(fresh),
            inputs={"images": network.images},
            outputs={"digits": network.digits, "probabilities": network.probabilities},
        )
        if target.exists():
            target.rename(former)
        fresh.rename(target)
