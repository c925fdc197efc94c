"""A job of DC/OS whose `log_dir` is in a bucket: moto's S3, by TensorFlow 2.16.2 with tensorflow-io."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.engine import published
from tests.integration.conftest import ROOT
from tests.programs.program import Program
from tests.unit.s3 import BUCKET, REGION, store


def test_checkpoints_are_written_to_a_bucket_and_read_from_it(
    on_docker: Callable[[str, str], Program], engine: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    shutil.copy(ROOT / "programs/mnist/train/digits.npz", data / "mnist.npz")
    data.chmod(0o755)
    program = on_docker("dcos_mnist", published.image(engine, "hdfs"))
    program.set("data_dir", str(data))
    service = {
        "shared_filesystem": f"s3://{BUCKET}/jobs",
        "virtual_network": False,  # moto listens on the machine's loopback
        "job_context": {"num_training_steps": 100},
    }
    program.set("options", json.dumps({"service": service, "worker": {"count": 1}}))
    with store() as bucket:
        program.configure(
            env={"S3_ENDPOINT": bucket.endpoint, "AWS_REGION": REGION},
            secrets={"AWS_ACCESS_KEY_ID": "of-the-tests", "AWS_SECRET_ACCESS_KEY": "canary-of-the-bucket"},
        )
        program.up()
        outputs = program.outputs()
        assert (outputs["state"], outputs["accuracy"] > 0.8) == ("succeeded", True), outputs["logs"]
        kept = bucket.objects()
        assert {Path(key).suffix for key in kept} >= {".index", ".meta"}
        assert all(key.startswith("jobs/") for key in kept)
        program.destroy()
        assert kept.keys() == bucket.objects().keys()
