"""A task that only serves TensorFlow's gRPC, for a client outside that drives all of them (in-graph replication).

The one file of the agent that needs TensorFlow; nothing else imports it.
"""


def serve() -> None:
    """Start the server that `TF_CONFIG` names, and serve until stopped."""
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    )
    print(f"serving at {server.target}", flush=True)
    server.join()
