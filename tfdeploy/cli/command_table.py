"""The commands of `tfdeploy`, and their exit codes. A command is imported when it is called: the list of all needs only this table."""

from typing import NamedTuple

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

ALL = ("cwd", "stack", "cluster", "json")
"""The options that select clusters and the format of the result."""


class Verb(NamedTuple):
    """One command of `tfdeploy`."""

    name: str
    """What the user types."""
    summary: str
    """The first line of its help."""
    arguments: str = ""
    """Its positional arguments, as its usage shows them."""
    common: tuple[str, ...] = ALL
    """The common options that it has."""
    wide: bool = False
    """Whether its table has a form with all columns."""
    aliases: tuple[str, ...] = ()
    runs_command: bool = False
    """Whether what follows its other arguments is the user's command, with its own options."""
    is_listed: bool = True
    """Whether the list of commands shows it."""


GROUPS: dict[str, tuple[Verb, ...]] = {
    "Observe": (
        Verb("status", "Show tasks, machines, and how good and far the run is.", wide=True, aliases=("ps", "show")),
        Verb("logs", "Show the log lines of tasks, oldest first.", "[HOSTNAME|JOB|CONTAINER]..."),
        Verb("events", "Show the events of the current run."),
        Verb("explain", "Explain problems and how to fix them.", "[HOSTNAME]"),
        Verb(
            "ls", "Show all your clusters, or what belongs to no stack.", common=("stack", "cluster", "json"), wide=True
        ),
        Verb("runs", "Show the runs of a cluster, the newest first.", wide=True),
        Verb("diff", "Compare two runs by results and arguments.", "[OLDER] [NEWER]"),
        Verb("top", "Show the processors and memory that each task uses.", wide=True, is_listed=False),
        Verb("dump", "Show what each task does now, with Python stacks.", "[HOSTNAME|JOB]...", wide=True),
        Verb("report", "Write an HTML page about the cluster."),
    ),
    "Control": (
        # It makes its own stack, so it has no options that select a cluster.
        Verb("run", "Run a command on a new cluster, and remove it.", "[--] COMMAND...", common=(), runs_command=True),
        Verb("wait", "Wait for the end of the run."),
        Verb("stop", "Stop the training. The cluster remains."),
        Verb("restart", "Restart a task, or restore what is lost.", "[HOSTNAME]"),
    ),
    "Connect": (
        Verb(
            "exec",
            "Run a command in a task.",
            "HOSTNAME -- COMMAND...",
            common=("cwd", "stack", "cluster"),
            runs_command=True,
        ),
        Verb("cp", "Copy files from a task, or from a stored run.", "TASK:PATH|run:RUN/PATH DEST"),
        Verb(
            "port-forward",
            "Forward ports of this computer to tasks until Ctrl-C.",
            "[HOSTNAME... | HOSTNAME [LOCAL:]PORT...]",
        ),
    ),
    "Maintain": (
        Verb("doctor", "Check what is installed, reachable and configured.", common=("cwd", "stack", "json")),
        Verb("options", "Show the arguments of a `TensorFlowCluster`.", "[WORD]", common=("json",)),
        Verb("import-tfjob", "Print the program that a TFJob becomes.", "FILE", common=(), is_listed=False),
    ),
}
"""The heading of each group in `tfdeploy --help`, and its commands."""

VERBS = tuple(verb for verbs in GROUPS.values() for verb in verbs)
BY_NAME = {name: verb for verb in VERBS for name in (verb.name, *verb.aliases)}
"""Each name and alias to the command."""

_UP = "`pulumi up` creates or updates the cluster"
_DESTROY = "`pulumi destroy` removes the cluster; `tfdeploy stop` stops the training"
_STOP = "`tfdeploy stop` stops the training; `pulumi cancel` ends an update"
_SHOW = "`tfdeploy status` shows a cluster, `tfdeploy ls` all of them"

HABITS: dict[str, str] = {
    **dict.fromkeys(("up", "apply", "create", "deploy", "submit"), _UP),
    **dict.fromkeys(("down", "destroy", "delete", "rm"), _DESTROY),
    **dict.fromkeys(("cancel", "kill"), _STOP),
    **dict.fromkeys(("get", "describe", "list"), _SHOW),
    "shell": "`tfdeploy exec worker-0 -- bash` opens a shell in a task",
    "ssh": "`tfdeploy exec --machine NAME` opens a shell on a machine",
    "scale": "`pulumi config set tfdeploy:workers 3` and `pulumi up` change the number of workers",
    "iam-policy": "the least IAM policy for EC2 is `docs/iam-policy.json`",
    "rbac-policy": "the least Role for Kubernetes is `docs/kubernetes-role.yaml`",
}
"""What users of kubectl, docker, sky, ray, terraform and pulumi type most, and verbs that were withdrawn, to what does it here."""


def overview() -> str:
    """What `tfdeploy help` prints."""
    lines = ["Usage: tfdeploy COMMAND [OPTIONS]     `tfdeploy COMMAND --help` has the options.", ""]
    for group, verbs in GROUPS.items():
        listed = [verb for verb in verbs if verb.is_listed]
        titles = [group, *[""] * (len(listed) - 1)]
        lines += [f"{title:<9} {verb.name:<13} {verb.summary}" for title, verb in zip(titles, listed, strict=True)]
    codes = [f"{code} {word}" for code, (word, _) in EXIT_CODES.items()]
    half = (len(codes) + 1) // 2
    lines += [
        "Options:  --help, --version, --debug, --install-completion, --show-completion",
        f"Exit:     {', '.join(codes[:half])},",
        f"          {', '.join(codes[half:])}",
    ]
    return "\n".join(lines) + "\n"
