"""Adds two numbers, each on a parameter server, on a worker: `python plus.py` prints 42."""

import sys

import ingraph


def plus(targets: ingraph.Targets) -> None:
    import tensorflow.compat.v1 as tf

    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            ten = tf.get_variable("ten", initializer=10)
        with tf.device("/job:ps/task:1"):
            more = tf.get_variable("more", initializer=32)
        with tf.device("/job:worker/task:1"):
            total = ten + more
        with ingraph.session(targets["worker-0"]) as session:
            session.run(tf.global_variables_initializer())
            print(session.run(total))


if __name__ == "__main__":
    sys.exit(ingraph.main(plus))
