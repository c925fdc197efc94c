"""Tells of training steps as the MNIST program does, and trains nothing; fails in the task that is named to it."""

import os
import sys
import time

FAILS_AT = 1000

task = "ours" if "TFDEPLOY_RUN" in os.environ else "peer"
step = 0
while True:
    step += 20
    time.sleep(0.02)
    print(f"step {step} loss 1.0", flush=True)
    if step == FAILS_AT and os.environ.get("TF_BENCH_FAILS") == task:
        sys.exit(f"{task} fails on purpose")
