"""What `tfdeploy explain` prints: the cases of the diagnosis tests. A mark stands before what is wrong."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.unit.report import test_diagnosis as cases
from tests.unit.report.test_diagnosis import ALL, NO_IMAGE, failed_task
from tests.unit.report.test_program_problems import line, look
from tests.unit.report.test_report import NOON, failed, finished, noon, sight, waiting, world
from tests.unit.snapshots import case, section
from tfdeploy.agent.record.record import StoredLine
from tfdeploy.backends.base import ObservedState
from tfdeploy.backends.docker.task_runner import DockerTaskRunner
from tfdeploy.report.program_problems import Finding
from tfdeploy.report.remedies import engine_remedy, exit_remedy

_PRINTED = [
    StoredLine(1.0, 2, "Traceback"),
    StoredLine(2.0, 1, "step 1"),
    StoredLine(3.0, 2, "ModuleNotFoundError: No module named 'scipy.stats'"),
]

CLUSTERS: dict[str, tuple[ObservedState, Mapping[str, Any]]] = {
    "an image is missing": (cases.NO_PS, {}),
    "no node is suitable": (cases.with_engine(sight(noon()), ps_0=cases.rejected(cases.NO_NODE, "scheduled")), {}),
    "the engine gives an unknown reason": (cases.with_engine(sight(noon()), ps_0=cases.rejected("odd words")), {}),
    "failed": (sight(failed(), logs={"worker-1": _PRINTED}), {}),
    "a worker of an elastic run has failed": (sight(cases.without_worker(), engine=ALL), {}),
    "failed, then destroyed": (sight(failed()), {"ended": NOON}),
    "the start timeout has passed": (cases.with_engine(sight(cases.overdue()), ps_0=cases.rejected()), {}),
    "a task is restarting": (sight(cases.restarting(), engine=ALL), {}),
    "no supervisord": (cases.silent(None), {}),
    "an object is missing": (replace(cases.silent(ALL), missing=["the Service mnist"]), {}),
    "no engine": (
        replace(
            cases.silent(None, "ssh://box does not answer"), unreachable_remedy=DockerTaskRunner.unreachable_remedy
        ),
        {},
    ),
    "a login has expired": (cases.EXPIRED, {}),
    "the record cannot be stored": (cases.NOT_STORED, {}),
    "no controller": (cases.silent(ALL), {}),
    "the controller's image is missing": (cases.silent(ALL, f"the controller is rejected: {NO_IMAGE}"), {}),
    "a machine is gone": (cases.LOST, {}),
    "a machine does not respond": (cases.SILENT, {}),
    "a machine did not boot": (cases.BOOT, {}),
    "nothing exists": (cases.nothing(), {}),
    "succeeded": (sight(finished()), {}),
    "succeeded, and a worker still trains": (sight(cases.finishing()), {}),
    "succeeded, and the evaluator evaluates": (sight(cases.evaluating()), {}),
    "succeeded, and the evaluator fails": (sight(cases.evaluating(code=1)), {}),
    "succeeded, and the evaluator does not end": (sight(cases.evaluating(600.0)), {}),
    "stopped by request": (sight(cases.stopped()), {}),
    "stopped by its budget": (sight(cases.out_of_budget()), {}),
    "running": (sight(world(), engine=ALL), {}),
    "serving": (sight(world(), engine=ALL), {"serve": True}),
    "succeeded, then destroyed": (sight(finished()), {"ended": NOON}),
    "running, then destroyed": (sight(world()), {"ended": NOON}),
    "starting": (sight(noon(), engine=ALL), {}),
    "a session waits": (replace(look([line("worker-0")]), engine=sight(world(), engine=ALL).engine), {}),
    "one task is late": (sight(waiting(), engine={"worker-0": True}), {}),
}

ENGINE = [
    NO_IMAGE,
    "pull access denied for x, repository does not exist",
    '"no suitable node (insufficient resources on 3 nodes)"',
    "driver failed: Bind for 0.0.0.0:80 failed: port is already allocated",
    'exec: "pithon": executable file not found in $PATH',
    "could not select device driver with capabilities: [[gpu]]",
    'services is forbidden: User "ada" cannot list resource "services" in API group "" in the namespace "training"',
    "the API server at https://kube:6443 does not respond (refused)",
    "https://kube:6443 does not accept the login of the kubeconfig (Unauthorized)",
    "ErrImagePull: not found",
    'FailedCreate: pods "mnist-ps-0-x" is forbidden: exceeded quota: team',
    'FailedCreate: pods "mnist-ps-0-x" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi',
    "0/2 nodes are available: 2 Insufficient cpu.",
    'FailedMount: MountVolume.SetUp failed for volume "token" : secret "mnist-ps-0" not found',
    "the node node-1 does not respond",
    "DeadlineExceeded: Job was active longer than specified deadline",
]

ENDS: list[tuple[Mapping[str, Any], str]] = [
    ({}, "ModuleNotFoundError: No module named 'scipy.stats'"),
    ({}, "tfdeploy: port 2222 of 127.0.0.1 is in use by another program"),
    ({}, "AttributeError: module 'keras._tf_keras.keras.layers' has no attribute 'experimental'"),
    ({}, "ImportError: Keras cannot be imported. Check that it is installed."),
    ({}, "AttributeError: module 'tensorflow' has no attribute 'estimator'"),
    ({}, "AttributeError: module 'tensorflow' has no attribute 'contrib'"),
    ({}, "AttributeError: module 'tensorflow' has no attribute 'placeholder'"),
    ({"exit_code": 127}, "tfdeploy: cannot start 'pithon': [Errno 2]"),
    ({"exit_code": 2}, "python: can't open file '/w/trian.py': [Errno 2]"),
    ({"exit_code": 2}, "train.py: error: unrecognized arguments: --stpes=3"),
    ({"exit_code": 2}, "train.py: error: unrecognized arguments: --job_name=ps --task_index=0"),
    ({}, "MemoryError"),
    ({}, "FileNotFoundError: [Errno 2] No such file or directory: '/data/x'"),
    ({"exit_code": 127}, ""),
    ({"state": "killed", "signal": "SIGKILL", "exit_code": 137}, ""),
    ({"state": "out of memory", "signal": "SIGKILL", "out_of_memory": True}, ""),
    ({}, "something else"),
]


def diagnosis() -> str:
    return "\n".join(
        [
            section(
                "a cluster", [case(title, _text(cases.why(seen, **more))) for title, (seen, more) in CLUSTERS.items()]
            ),
            section("one task", [case("worker-0", _text(cases.why(cases.NO_PS, "worker-0")))]),
            section("errors of the engine", [case(reason, engine_remedy(reason, "ps")) for reason in ENGINE]),
            section(
                "how a task ended",
                [case(line or str(dict(task)), exit_remedy(failed_task(**task), [line])) for task, line in ENDS],
            ),
        ]
    )


def _text(findings: list[Finding]) -> str:
    return "\n".join(
        line
        for finding in findings
        for line in (
            f"{'! ' * finding.wrong}{finding.text}",
            *(f"| {text}" for text in finding.lines),
            *([f"-> {finding.remedy}"] if finding.remedy else []),
        )
    )
