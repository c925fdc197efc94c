"""TensorFlow with one thread for each task: several tasks share few processors here."""

ONE_THREAD = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Environment variables; the local backend passes variables with these prefixes on to the tasks."""
