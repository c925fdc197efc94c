"""`python -m bench` with another program in the place of MNIST: the real engine and real processes, without TensorFlow."""

import sys
from pathlib import Path

from bench import mnist, quiet
from bench.__main__ import main

if __name__ == "__main__":
    quiet.LONGEST = 0.0
    mnist.PROGRAM = Path(__file__).parent / "training"
    sys.exit(main())
