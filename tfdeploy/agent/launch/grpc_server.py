"""A task that only runs TensorFlow's gRPC server, for a client that drives all tasks (in-graph replication).

The only module of the agent that imports TensorFlow.
"""


def serve() -> None:
    """Start the server of this task in `TF_CONFIG`, and serve until stopped."""
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    )
    print(f"serving at {server.target}", flush=True)
    server.join()
