"""`python from_tf_config.py PROGRAM [ARGUMENT…]` runs a Python program with the four flags that TF_CONFIG leads to."""

import json
import os
import runpy
import sys


def main() -> None:
    """Run the program that the arguments name."""
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, task = config["cluster"], config["task"]
    hosts = [f"--{job}_hosts={','.join(cluster[job])}" for job in ("ps", "worker")]
    sys.argv = [*sys.argv[1:], f"--job_name={task['type']}", f"--task_index={task['index']}", *hosts]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
