"""`python saving.py MIB SECONDS` counts steps, and saves a checkpoint of so many MiB every so many seconds, as TensorFlow does: the
shard, the index, then the file `checkpoint`. The last two stay.
"""

import os
import sys
import time
from pathlib import Path

_LOOPS = 20_000
"""One step takes a millisecond or two."""

_PRINTED = 50
"""Steps between two lines."""


def save(folder: Path, step: int, content: bytes) -> None:
    """Write one checkpoint."""
    (folder / f"ckpt-{step}.data-00000-of-00001").write_bytes(content)
    (folder / f"ckpt-{step}.index").write_text(str(step))
    (folder / "draft").write_text(f'model_checkpoint_path: "{folder}/ckpt-{step}"')
    (folder / "draft").replace(folder / "checkpoint")


def main() -> None:
    """Count and save until stopped."""
    content, pause = os.urandom(int(sys.argv[1]) << 20), float(sys.argv[2])
    folder, step, saved, due = Path(os.environ["TFDEPLOY_TRAIN_DIR"]), 0, [0], 0.0
    while True:
        step += 1
        sum(range(_LOOPS))
        if step % _PRINTED == 0:
            print(f"step {step} done", flush=True)
        if time.monotonic() >= due:
            due = time.monotonic() + pause
            save(folder, step, content)
            saved.append(step)
            for path in folder.glob(f"ckpt-{saved.pop(0)}.*") if len(saved) > 2 else ():
                path.unlink()


if __name__ == "__main__":
    main()
