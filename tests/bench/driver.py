"""`python -m bench` with another program in the place of MNIST: the real engine and real processes, without TensorFlow."""

import sys
from pathlib import Path

from bench import mnist
from bench.__main__ import main

if __name__ == "__main__":
    mnist.PROGRAM = Path(__file__).parent / "training"
    sys.exit(main())
