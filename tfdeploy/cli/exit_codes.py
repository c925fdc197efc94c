"""The exit codes of the command."""

FAILED, USAGE, NOT_FOUND, UNREACHABLE, TIMED_OUT, INTERNAL, INTERRUPTED = 1, 2, 3, 4, 5, 70, 130  # 70: EX_SOFTWARE

EXIT_CODES = {
    0: ("success", "Success."),
    FAILED: ("failed or a problem", "The run or the command failed; `explain` or `doctor` found a problem."),
    USAGE: ("wrong usage", "Wrong usage, or an argument that is not valid."),
    NOT_FOUND: ("not found", "No such cluster, task, machine, run or stack."),
    UNREACHABLE: ("does not respond", "The Docker engine, the machine or the controller does not respond."),
    TIMED_OUT: ("not in time", "The run did not finish within `--timeout`."),
    INTERNAL: ("internal error", "Internal error."),
    INTERRUPTED: ("Ctrl-C", "Interrupted with Ctrl-C."),
}
"""Exit code to its meaning, in a word or two and as a sentence. `exec` and `run` also exit with the code of the program that they
started."""
