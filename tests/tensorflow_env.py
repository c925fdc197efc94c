"""The environment in which the tests run TensorFlow: one thread for the work within an operation.

Tests train small networks, and several of them run at the same time, so more threads only take turns on the same cores. The local
backend passes these variables from `pulumi up` to the tasks; tasks in containers get them by the argument `env`. The number of
threads between operations is left alone: with `TF_NUM_INTEROP_THREADS=1` training with `ParameterServerStrategy` never begins.
"""

ONE_THREAD: dict[str, str] = {"TF_NUM_INTRAOP_THREADS": "1", "OMP_NUM_THREADS": "1"}
