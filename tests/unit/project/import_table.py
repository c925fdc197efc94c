"""The import table: which module may import which of ours, and which packages of others.

Folders form one column; each may import what is below it. From the top: `cli`, `cluster`, `resources`, `registry`, `report`,
`backends`, `plan`, `spec`, `agent`.
"""

from collections.abc import Mapping, Sequence

ANYTHING = None

BASE = ("errors", "paths", "units", "agent.files", "agent.polling")
SHARED_BY_BACKENDS = (
    "receipts",
    "backends.base",
    "backends.controller_calls",
    "backends.port_forward",
    "backends.record_copy",
    "backends.stack_config",
    "backends.task_access",
    "backends.validate",
    "backends.zipapp",
)

TABLE: Mapping[str, Sequence[str] | None] = {
    "__init__": ANYTHING,
    "agent": ("agent",),
    "backends.ec2.watchdog": ("backends.ec2.watchdog",),
    "errors": (),
    "tracebacks": ("errors",),
    "units": (),
    "paths": ("errors", "agent.files"),
    "receipts": (*BASE, "agent.run_spec"),
    "spec": (*BASE, "spec", "agent.flags", "agent.run_state", "agent.settings", "agent.until"),
    "plan": (
        *BASE,
        "plan",
        "spec",
        "agent.run_spec",
        "agent.run_state",
        "agent.success_policy",
        "agent.tf_config",
        "agent.flags",
    ),
    "backends": (*BASE, *SHARED_BY_BACKENDS, "plan", "spec", "agent"),
    "backends.zipapp": ("agent", "backends.ec2.watchdog"),
    "backends.local": (*BASE, *SHARED_BY_BACKENDS, "backends.local", "plan", "spec", "agent"),
    "backends.docker": (*BASE, *SHARED_BY_BACKENDS, "backends.docker", "plan", "spec", "agent"),
    "backends.ec2": (*BASE, *SHARED_BY_BACKENDS, "backends.docker", "backends.ec2", "plan", "spec", "agent"),
    "report": (*BASE, "outputs", "receipts", "report", "backends.base", "plan", "spec", "agent"),
    "report.html": (*BASE, "report", "agent.events", "agent.run_state"),
    "registry": (*BASE, "report.expected", "backends.base"),
    "resources": (
        "receipts",
        "registry",
        "backends.base",
        "backends.stack_config",
        "report.run_outcomes",
        "spec.arg_reader",
        "spec.environment",
        "errors",
        "agent",
    ),
    "args": (),
    "awaited": ("errors", "identity", "spec"),
    "outputs": (),
    "arg_docs": (*BASE, "args", "spec"),
    "config": (*BASE, "args", "spec"),
    "identity": (*BASE, "backends.base", "plan.inventory", "report.report"),
    "stored_resources": ("identity",),
    "shipped_code": ("paths", "receipts", "plan.code_bundle", "agent.run_spec", "agent.run_state"),
    "cluster": (
        *BASE,
        "shipped_code",
        "identity",
        "stored_resources",
        "args",
        "awaited",
        "config",
        "outputs",
        "resources",
        "registry",
        "report",
        "backends",
        "plan",
        "spec",
    ),
    "provider": ("arg_docs", "awaited", "cluster", "registry", "report.update_failure"),
    "cli": (
        *BASE,
        "cli",
        "outputs",
        "receipts",
        "registry",
        "report",
        "backends.base",
        "backends.port_forward",
        "backends.task_access",
        "agent",
    ),
    "cli.commands.doctor": (
        *BASE,
        "cli",
        "registry",
        "report",
        "backends.base",
        "spec.backends",
        "agent",
    ),
    "cli.commands.iam_policy": (*BASE, "cli", "registry", "backends.base", "backends.ec2.iam_policy", "spec.ec2"),
    "cli.commands.options": ("arg_docs", "cli", "errors"),
    "cli.run.pulumi_program": ("cluster", "cli", "errors", "report.update_failure"),
}
"""Module, or folder of modules, to what of ours it may import. A folder's name stands for all modules in it."""

FOREIGN: Mapping[str, Sequence[str] | None] = {
    "": (),
    "agent.grpc_server": ("tensorflow",),
    "args": ("pulumi",),
    "awaited": ("pulumi",),
    "backends.base": ("pulumi",),  # for type checkers only
    "backends.stack_config": ("pulumi",),
    "backends.validate": ("packaging",),
    "backends.local": ("packaging", "psutil", "supervisor"),
    "backends.local.planner": ("packaging", "psutil", "pulumi", "supervisor"),  # pulumi for type checkers only
    "backends.docker": ("docker", "pulumi", "pulumi_docker", "requests"),
    "backends.ec2": ("boto3", "botocore", "pulumi", "pulumi_aws"),
    "backends.ec2.watchdog": (),
    "cli": ("rich", "typer", "yaml"),
    "cli.run.pulumi_program": ("pulumi",),
    "cluster": ("pulumi",),
    "identity": ("pulumi",),
    "config": ("pulumi",),
    "plan.code_bundle": ("pathspec",),
    "provider": ("pulumi",),
    "report.update_failure": ("pulumi",),
    "report.wait": ("pulumi",),
    "resources": ("pulumi",),
    "stored_resources": ("pulumi",),
    "shipped_code": ("pulumi",),
}
"""Module, or folder of modules, to the packages besides Python's own that it may import."""

MAY_COMPUTE = ("__init__", "backends.base")
"""Modules that import a module whose name is only known at run time."""
