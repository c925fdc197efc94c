"""What to do about a task that cannot start, or about a program that failed: by the words of the engine or the program; and the same in
the words of `tfdeploy run`. Pure."""

import re
from collections.abc import Sequence

from ..agent.model.run_state import TaskState
from ..agent.model.task_command import FLAGS

_PORT = (
    r"address already in use|port is already allocated|port \d+.* (?:is (?:taken|in use)|already)",
    "Another program uses that port: `ss -ltnp` shows it. Choose another by `jobs={{{job!r}: {{'port': …}}}}`.",
)
_SMALLER = "lower the `memory`, `cpus` or `gpus` of {job!r} and run `pulumi up`, or "
_ENGINE_REMEDIES = (
    (
        r"the API server at \S+ does not respond|no context of the kubeconfig",
        "Restore the connection, or correct `kubernetes.context` or `KUBECONFIG`, until `kubectl get pods` works.",
    ),
    (r"does not accept the login of the kubeconfig", "Log in again, until `kubectl get pods` works."),
    (r"is forbidden: User |you may not ", "docs/kubernetes-role.yaml has the Role that you need."),
    (
        r"ErrImage|ImagePullBackOff|InvalidImageName",
        "Name an image that the nodes can pull, by `container={{'image': …}}`, and a login by `kubernetes.image_pull_secrets`.",
    ),
    (
        r"exceeded quota|(?:maximum|minimum) \S+ usage per (?:Container|Pod)",
        f"`kubectl describe quota,limits` shows the limit: {_SMALLER}have it raised. Kubernetes then starts the task by itself.",
    ),
    (
        r"\d+/\d+ nodes are available",
        f"No node fits, see `kubectl describe nodes`: {_SMALLER}change `kubernetes.node_selector`, or add a node.",
    ),
    (
        r"FailedMount",
        "`pulumi up --refresh` creates again what tfdeploy created; create what is yours. The task then starts.",
    ),
    (
        r"the node (?P<node>\S+) does not respond",
        "Its pod starts elsewhere when the node is back, or when it was deleted: `kubectl delete node {node}`.",
    ),
    (r"\bsuspended$|DeadlineExceeded|^BackoffLimitExceeded", "`pulumi up --refresh` starts it again."),
    (
        (
            r"no such image|pull access denied|manifest .*(?:unknown|not found)|repository .*not (?:found|exist)|invalid reference"
            r"|failed to resolve|requested access to the resource is denied|image .*not found"
        ),
        (
            "Name an image that the machines can pull, by `container={{'image': …}}` or "
            "`jobs={{{job!r}: {{'container': {{'image': …}}}}}}`; try `docker pull IMAGE`."
        ),
    ),
    (
        r"no suitable node",
        (
            "No machine fits: change `container={{'placement': …}}`, or the `cpus`, `memory` or `gpus` of {job!r}. "
            "`docker node ls` lists the machines."
        ),
    ),
    (
        r"supervisord \(process (?P<pid>\d+)\) runs, and cannot be reached",
        "The training continues. `kill {pid}` ends it; then `pulumi up --refresh` resumes it from its last checkpoint.",
    ),
    (r"supervisord \(process (?P<pid>\d+)\)", "`kill -CONT {pid}` continues it if it is suspended."),
    _PORT,
)
OWN_COPY = (
    "it is in the task's own copy of the code, which the other tasks and the next attempt do not see. Store checkpoints in "
    "`{{train_dir}}`, by a placeholder in `command`, or in `$TFDEPLOY_TRAIN_DIR`."
)
_RELATIVE_CHECKPOINT = r"(?<![\w./:{-])[\w.-]+(?:/[\w./-]*(?:ckpt|checkpoint|tempstate|_temp)|\.ckpt)[\w./-]*"
_SAVED = re.compile(
    r"(?:Saving checkpoints for \d+ into|Saving checkpoint to path|Restoring parameters from) (?P<name>(?!/|\w+://)\S*[^\s.])"
)
"""What `MonitoredTrainingSession` and `Supervisor` log of a checkpoint with a relative path."""

_KERAS_2_NAMES = (
    "reset_states|predict_proba|to_yaml|total_loss|state_updates|_get_distribution_strategy|_create_all_weights|_decayed_lr"
    "|get_gradients|add_update|get_(?:input|output)_(?:shape_)?at|use_sequence_api|fit_generator|evaluate_generator"
    "|predict_generator|predict_classes|get_updates"
)
_OF_KERAS = r"SGD|Ada\w+|Nadam|RMSprop|Ftrl|Lion|LossScaleOptimizer|Dense|Dropout|Conv\w+|LSTM|GRU|Flatten|Embedding|KerasTensor"
_KERAS_CLASSES = (
    rf"{_OF_KERAS}|Trainer|BaseOptimizer|Model|TensorBoard|EarlyStopping|ReduceLROnPlateau|CSVLogger|BackupAndRestore"
    r"|ModelCheckpoint|(?:Max|Unit)Norm|L1|L2|L1L2|(?:Random|Truncated)(?:Normal|Uniform)|VarianceScaling|(?:Glorot|He|Lecun)\w+"
)
_KERAS_2 = (
    r"(?:supported in|available with) Keras 3\b|Keras 3 only|A KerasTensor cannot"
    r"|convert a value \(PerReplica|unsupported type \(<class '\S*\.PerReplica'"
    r"|module '(?:tensorflow\.)?keras\b|No module named '(?:tensorflow\.(?:python\.)?)?keras\b"
    r"|cannot import name '\w+' from '(?:tensorflow\.)?keras|Could not deserialize 'keras|instances of .?keras\.Layer"
    r"|Unrecognized keyword arguments|Argument(?:s|\(s\)) not recognized: \{|must end in `\.(?:keras|weights\.h5)`"
    r"|Invalid filepath extension for saving|Could not interpret (?:initializer identifier: \(|optimizer identifier: <tensorflow)"
    rf"|object has no attribute '(?:{_KERAS_2_NAMES})'|'(?:{_OF_KERAS})' object has no attribute"
    rf"|(?:{_KERAS_CLASSES})\.\w+\(\) (?:got an unexpected keyword argument|missing \d required positional argument)"
    r"|Expected .?\w*metrics.? argument to be a list|Invalid value for argument `reduction`|`add_metric\(\)` method is deprecated"
    r"|pass this dataset to .{0,3}ClusterCoordinator\.create_per_worker_dataset"
    r"|add_weight\(\) got multiple values|`name` must be passed as a keyword argument\. Received: add_weight"
)
"""What Keras 3 says to programs for Keras 2, with TensorFlow 2.16 to 2.21. docs/how-to/existing-programs.md has the same."""

_FLAGS = "|".join(FLAGS)
_PROGRAM_REMEDIES = (
    (
        r"ImportError: Keras cannot be imported",
        "`TF_USE_LEGACY_KERAS` is set, and Keras 2 is not installed: add `tf_keras` to `requirements`.",
    ),
    (
        (
            r"module 'tensorflow\S*' has no attribute 'estimator'|cannot import name 'estimator' from 'tensorflow"
            r"|No module named 'tensorflow(?:\.python\.estimator|_estimator|_addons)"
        ),
        (
            "TensorFlow 2.16 and later have no Estimator and no TensorFlow Addons: use TensorFlow 2.15, by "
            '`container={{"image": "tensorflow/tensorflow:2.15.0"}}`, or on `local` by '
            '`requirements=["tensorflow==2.15.*"]` with Python 3.9 to 3.11.'
        ),
    ),
    (
        r"module 'tensorflow\S*' has no attribute 'contrib'|No module named 'tensorflow\.contrib",
        "TensorFlow 2 has no `tf.contrib`: the program needs TensorFlow 1, or a change of what it takes from there.",
    ),
    (
        r"module 'tensorflow(?:\S*\.train)?' has no attribute",
        "If the program is written for TensorFlow 1, begin it with `import tensorflow.compat.v1 as tf; tf.disable_v2_behavior()`.",
    ),
    (
        _KERAS_2,
        (
            'If the program is written for Keras 2: this TensorFlow has Keras 3, so set `requirements=["tf_keras"]` and '
            '`env={{"TF_USE_LEGACY_KERAS": "1"}}`. A program that imports `keras` itself has to import `tf_keras` instead.'
        ),
    ),
    (
        rf"unrecognized arguments:.*--(?:{_FLAGS})\b|Unknown command line flag '(?:{_FLAGS})'|No such option:? '?--(?:{_FLAGS})\b",
        (
            "The program does not know the four flags that tfdeploy appends: have it accept them (`parse_known_args`), or pass "
            'them by its own names with placeholders in `command`. If it reads `TF_CONFIG`, set `flags="never"`.'
        ),
    ),
    (
        r"ModuleNotFoundError: No module named 'pkg_resources'",
        "Add `setuptools<81` to `requirements`, the last with pkg_resources, and run `pulumi up`.",
    ),
    (
        r"ModuleNotFoundError: No module named '(?P<name>[A-Za-z0-9_]+)",
        "Add the package that provides {name} to `requirements`, or the module to `code`, and run `pulumi up`.",
    ),
    (
        r"DuplicateFlagError: The flag '(?P<name>[^']+)' is defined twice\. First from (?P<other>[\w.]+?),? ",
        "{other} defines the flag {name} too: rename it in the program, and in `command`.",
    ),
    (
        r"Collective ops must be configured at program startup",
        "Create the strategy before any tensor, dataset or model.",
    ),
    (
        r"Failed to connect to remote host: Connection refused",
        (
            "The program called a task that does not listen yet, or has ended: `tfdeploy events` shows which. If it began too early, "
            '`restart={{"on": ["signal", "1"]}}` starts it again.'
        ),
    ),
    _PORT,
    (
        r"cannot start '(?P<name>[^']*)': its first line names '[^']*\\r'|env: [^\n]*\\r|\$'\\r': command not found",
        (
            "The script has Windows line ends: `sed -i 's/\\r$//' SCRIPT` converts it. With `* text=auto eol=lf` in .gitattributes Git "
            "does not bring them back."
        ),
    ),
    (r"cannot start '(?P<name>[^']*)': Permission denied", "Run `chmod +x {name}`, and `pulumi up`."),
    (
        r"cannot start '(?P<name>[^']*)': (?:its first line names|Exec format error)",
        (
            "Correct the first line of {name}, such as `#!/bin/sh`, or install the program that it names where the tasks run. "
            "A program may also be for another processor."
        ),
    ),
    (
        r"Job \"\" was not defined in cluster|No such job in cluster: ''|job_name.{0,40} (?:is empty|not specified)",
        (
            "The program did not get --job_name: a shell such as `sh -c` is between it and the four flags. Use placeholders such as "
            '--job_name={{job_name}} in `command`, or "$@" in the text of the shell.'
        ),
    ),
    (
        r"Job \"master\" was not defined in cluster|No such job in cluster: 'master'",
        "The program calls the chief `master`, as TensorFlow 1 did: set `chief=True` and `tf_config_master=True`.",
    ),
    (
        r"Job \"(?P<name>[^\"]+)\" was not defined in cluster|No such job in cluster: '(?P<other>[^']+)'",
        "The program names a job that its cluster does not have: the names are chief, ps and worker.",
    ),
    (
        r"cannot start '(?P<name>[^']*)'",
        "There is no program {name}: correct the first word of `command`, or add the program to `code` or to the image.",
    ),
    (
        (
            r"(?m)^(?=.*(?:NotFound|NOT_FOUND|No such file or directory|Failed to find any matching files))"
            rf".*?(?P<name>{_RELATIVE_CHECKPOINT})"
        ),
        "{name} is a relative path: " + OWN_COPY,
    ),
    (
        r"MemoryError|OOM when allocating|ResourceExhausted",
        "Use smaller batches, or raise the limit by `jobs={{{job!r}: {{'memory': …}}}}`.",
    ),
)

_NOT_FOUND, _NOT_EXECUTABLE, _SIGNALLED = 127, 126, 128
_MOST_SIGNALS = 64
_SIGNALS = (
    *("HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE"),
    *("KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM"),
)
"""The signals of Linux, where the tasks run, from 1 on."""

_MEMORY = " Often the memory was used up: `dmesg` shows it; use smaller batches or fewer tasks."


def engine_remedy(reason: str, job: str) -> str:
    """What to do when an engine cannot start a task of this job; empty for unknown reasons."""
    return _remedy(_ENGINE_REMEDIES, reason, job)


def exit_remedy(task: TaskState, lines: Sequence[str]) -> str:
    """What to do about a task that failed, by how it ended and its last lines."""
    if task.end and task.end.out_of_memory:
        return f"Raise the limit by `jobs={{{task.job!r}: {{'memory': …}}}}`, or use smaller batches."
    remedy = _remedy(_PROGRAM_REMEDIES, "\n".join(lines), task.job)
    if remedy:
        return remedy
    if killed := _killed_behind(task):
        return killed
    if task.exit_code in (_NOT_FOUND, _NOT_EXECUTABLE):
        return "This exit code means that the program could not be started: correct `command`."
    if task.signal == "SIGKILL":
        return "Only the kernel or a user sends SIGKILL: `dmesg` shows whether the machine ran out of memory."
    return f"`tfdeploy logs {task.hostname}` shows its output."


def _killed_behind(task: TaskState) -> str:
    """What an exit code of 128 + the number of a signal means: shells and `env` report so that their program was killed."""
    code = task.exit_code or 0
    number = code - _SIGNALLED
    if task.signal or not 0 < number <= _MOST_SIGNALS:
        return ""
    killed = f"SIG{_SIGNALS[number - 1]}" if number <= len(_SIGNALS) else f"signal {number}"
    counts = f'It counts as an exit code: `restart={{"on": ["signal", "{code}"]}}` restarts the task after it.'
    memory = _MEMORY if killed == "SIGKILL" else ""
    return f"{code} is 128 + {number}: a program that the command ran was killed by {killed}. {counts}{memory}"


def _remedy(remedies: Sequence[tuple[str, str]], text: str, job: str) -> str:
    for pattern, remedy in remedies:
        if match := re.search(pattern, text, re.IGNORECASE):
            return remedy.format(job=job or "worker", **match.groupdict())
    return ""


def relative_checkpoint(lines: Sequence[str]) -> str:
    """The relative path of the checkpoint that a program has stored, by its last lines; empty if there is none."""
    for line in reversed(lines):
        if match := _SAVED.search(line):
            return match["name"]
    return ""


_RUN_SENTENCES = (
    (r"Fix the cause, and run `pulumi up`.*", "Fix the cause, and run the command again by `tfdeploy run`."),
    (r"`pulumi up` creates it again;", "`tfdeploy run` with the same command creates another one;"),
    (r", and run `pulumi up`|, and `pulumi up`", ", and run the command again"),
    (r"`pulumi up`", "`tfdeploy run`"),
)
_ARGUMENT = re.compile(r"`?\b(\w+)=(\"[^\"`]*\"|\{[^`]*?\}|\[[^`]*?\])(`|(?=[.,;:] |[.,;:]?$))")
"""An argument with its value, in backticks or at the end of a sentence."""


def in_words_of_run(text: str) -> str:
    """A remedy for a cluster of `tfdeploy run`: arguments are options, and the command is run again."""
    for pattern, sentence in _RUN_SENTENCES:
        text = re.sub(pattern, sentence, text)
    return re.sub(
        r"\b([Ss])et (?=`-)", lambda match: "Add " if match[1] == "S" else "add ", _ARGUMENT.sub(_option, text)
    )


def _option(match: re.Match[str]) -> str:
    name, value = match[1], match[2]
    text = value.strip('"') if value.startswith('"') else "'{}'".format(value.replace("'", '"'))
    if variable := re.fullmatch(r"'\{\"(\w+)\": \"(\w*)\"\}'", text if name == "env" else ""):
        return f"`-e {variable[1]}={variable[2]}`"
    return f"`--set {name}={text}`"
