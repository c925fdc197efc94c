"""The network: 784 pixels, one hidden layer, ten digits."""

from dataclasses import dataclass

import tensorflow.compat.v1 as tf


@dataclass(frozen=True)
class Model:
    """Tensors of the graph: inputs and outputs."""

    images: tf.Tensor
    labels: tf.Tensor
    digits: tf.Tensor
    probabilities: tf.Tensor
    loss: tf.Tensor
    accuracy: tf.Tensor


def layer(name: str, inputs: tf.Tensor, units: int) -> tf.Tensor:
    with tf.variable_scope(name):
        weights = tf.get_variable(
            "weights",
            [inputs.shape[1], units],
            initializer=tf.glorot_uniform_initializer(seed=1),
        )
        biases = tf.get_variable("biases", [units], initializer=tf.zeros_initializer())
        return tf.matmul(inputs, weights) + biases


def build(hidden_units: int) -> Model:
    """The network, made in the current graph, on the current device (or device function)."""
    images = tf.placeholder(tf.uint8, [None, 28, 28], name="images")
    labels = tf.placeholder(tf.uint8, [None], name="labels")
    pixels = tf.reshape(tf.cast(images, tf.float32) / 255, [-1, 28 * 28])
    scores = layer("digits", tf.nn.relu(layer("hidden", pixels, hidden_units)), 10)

    expected = tf.cast(labels, tf.int64)
    predictions = tf.argmax(scores, axis=1)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=expected, logits=scores)
    return Model(
        images=images,
        labels=labels,
        digits=predictions,
        probabilities=tf.nn.softmax(scores),
        loss=tf.reduce_mean(losses),
        accuracy=tf.reduce_mean(tf.cast(tf.equal(predictions, expected), tf.float32)),
    )
