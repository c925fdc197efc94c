"""The exit codes of the command."""

FAILED, USAGE, NOT_FOUND, UNREACHABLE, TIMED_OUT, INTERNAL, INTERRUPTED = 1, 2, 3, 4, 5, 70, 130  # 70: EX_SOFTWARE

EXIT_CODES = {
    0: "Success.",
    FAILED: "The run or the command failed; `explain` or `doctor` found a problem.",
    USAGE: "Wrong usage, or an argument that is not valid.",
    NOT_FOUND: "No such cluster, task, machine, run or stack.",
    UNREACHABLE: "The Docker engine, the machine or the controller does not respond.",
    TIMED_OUT: "The run did not finish within `--timeout`.",
    INTERNAL: "Internal error.",
    INTERRUPTED: "Interrupted with Ctrl-C.",
}
"""Exit code to its meaning. `exec` and `run` also exit with the code of the program that they started."""

EXIT_WORDS = {
    0: "success",
    FAILED: "failed or a problem",
    USAGE: "wrong usage",
    NOT_FOUND: "not found",
    UNREACHABLE: "does not respond",
    TIMED_OUT: "not in time",
    INTERNAL: "internal error",
    INTERRUPTED: "Ctrl-C",
}
"""The same in a word or two."""
