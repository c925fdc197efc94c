"""A cluster of a program before anything is registered: inspected, planned, validated and rendered, or refused."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi

from .. import registry
from ..backends.backend import Backend, load
from ..backends.base import ClusterRef, Planner, Rendered
from ..errors import TfdeployError
from ..identity import (
    Identity,
    choose_identity,
    cluster_to_adopt,
    others_of_same_name,
    refuse_other_place,
    stored_cluster,
    stored_names,
)
from ..paths import cluster_folder
from ..plan.inventory import Inventory
from ..plan.plan import Plan, make_plan
from ..report.expected_state import expected_state
from ..spec.cluster import ClusterSpec, cluster_spec
from ..spec.environment import SecretText
from ..spec.unknown_values import Unknown, unknowns
from . import shipped_code
from .config import environment_arguments, overridden, resolved, shown
from .move import Move, described, move_of

if TYPE_CHECKING:
    from ..plan.code_bundle import Bundle


@dataclass(frozen=True)
class Declaration:
    """One cluster of the program, with all that is known about it before anything is registered."""

    backend: Backend
    identity: Identity
    move: Move
    cluster: ClusterRef
    spec: ClusterSpec
    inventory: Inventory
    plan: Plan
    rendered: Rendered
    warnings: tuple[str, ...]
    bundle: "Bundle | None"
    code_without: tuple[Path, ...]
    """Files and folders that are not part of the code, although they are in its folder."""
    secrets: Mapping[str, pulumi.Input[str]]
    options: Mapping[str, str]
    """The arguments as the user gave them, without secrets."""
    unknown: tuple[Unknown, ...]
    """The arguments that this preview does not know."""
    begun: float


def declare(
    component_type: str, name: str, args: Mapping[str, Any], providers: Mapping[str, pulumi.ProviderResource]
) -> Declaration:
    """Inspect, plan, validate and render a cluster, or refuse it."""
    begun = time.time()
    args, two_values = resolved(name, args, pulumi.Config("tfdeploy")), overridden(args, pulumi.Config("tfdeploy"))
    args.update(environment_arguments())
    spec = cluster_spec(name, args)
    backend = load(spec.backend)
    planner = backend.planner
    stored = stored_cluster(name, component_type)
    identity = choose_identity(name, stored, spec.adopt)
    move = move_of(spec, stored, partial(stored_names, component_type))
    spec = replace(spec, adopt=cluster_to_adopt(stored, spec.adopt, spec.backend, backend.adoption_completed_by))
    cluster = _cluster_ref(planner, identity, spec, providers)
    inventory = planner.inspect(cluster, spec, Path.cwd())
    refuse_other_place(backend, cluster, stored, inventory.place)
    code_without = shipped_code.not_shipped(inventory)
    bundle = shipped_code.bundle(name, Path.cwd() / spec.code, code_without) if spec.code else None
    plan = make_plan(spec, inventory, bundle.name if bundle else "")
    move = described(move, spec, plan, inventory)
    without_record = (
        replace(spec, resume_from="") if move.origins else spec
    )  # the run to resume is in the record that moves
    warnings = planner.validate(cluster, without_record, plan, inventory, bundle.files if bundle else ())
    rendered = planner.render(cluster, spec, plan, inventory)
    return Declaration(
        backend=backend,
        identity=identity,
        move=move,
        cluster=cluster,
        spec=spec,
        inventory=inventory,
        plan=plan,
        rendered=rendered,
        warnings=(
            *two_values,
            *warnings,
            *plan.warnings,
            *shipped_code.warnings(spec, plan.run, bundle),
            *([] if stored else _others(backend, cluster)),
        ),
        bundle=bundle,
        code_without=code_without,
        secrets=_secret_values(spec, args),
        options={key: shown(key, value) for key, value in args.items()},
        unknown=unknowns(args),
        begun=begun,
    )


def _cluster_ref(
    planner: Planner[Any], identity: Identity, spec: ClusterSpec, providers: Mapping[str, pulumi.ProviderResource]
) -> ClusterRef:
    cluster: ClusterRef = {
        "id": identity.id,
        "owner": identity.owner,
        "backend": spec.backend,
        "project": pulumi.get_project(),
        "stack": pulumi.get_stack(),
        "name": spec.name,
        "home": "",
    }
    return {**cluster, "home": planner.home(cluster_folder(cluster), spec, providers)}


def _others(backend: Backend, cluster: ClusterRef) -> list[str]:
    """Warnings about clusters that a reader could take for this one. Without the permission to list them, there are none."""
    with suppress(TfdeployError):
        return others_of_same_name(cluster, backend.discovery.discover(cluster["home"]))
    return []


def registry_entry(declaration: Declaration) -> registry.Entry:
    """The cluster's entry in the registry, where the command finds it."""
    return registry.Entry(
        declaration.cluster,
        str(Path.cwd()),
        expected_state(declaration.plan, declaration.spec),
        declaration.options,
        registry.versions(),
        begun=declaration.begun,
        login=registry.login(),
        organization=pulumi.get_organization(),
    )


def expired_archives(declaration: Declaration) -> list[Path]:
    retention, run = declaration.spec.retention, declaration.plan.run
    if not retention:
        return []
    in_use = (run.train_dir, run.data_dir, str(Path.cwd()))
    return registry.expired_archives(registry_entry(declaration), retention, declaration.begun, in_use)


def _secret_values(spec: ClusterSpec, args: Mapping[str, Any]) -> dict[str, pulumi.Input[str]]:
    """The values of `secrets`, and the secret ones of `env`."""
    secret_env = {name: args["env"][name] for name in spec.secret_env}
    plain = {name: value.value if isinstance(value, SecretText) else value for name, value in secret_env.items()}
    return {**args.get("secrets", {}), **plain}
