"""What Pulumi's Docker provider makes for a cluster: network, secrets, the agent as a config, images.

All of it is kept on delete: the sweeper removes it, by its labels, after everything else; so nothing hangs on an engine that is
gone, or on a thing that somebody removed by hand.
"""

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pulumi
import pulumi_docker as docker
from docker.auth import load_config

from ...application import application
from ...containers import OVERLAY
from ...spec import ClusterSpec
from ..base import Cluster
from . import images, names
from .engine import address

Supplies = dict[str, pulumi.Output[str]]


@dataclass(frozen=True)
class Where:
    """The engine that they are made on."""

    host: pulumi.Input[str]
    mark: pulumi.Input[str]
    """What tells its Swarm from others: under another mark they are made anew."""
    ssh_opts: Sequence[str] | None = None


def supply(
    name: str,
    cluster: Cluster,
    spec: ClusterSpec,
    token: pulumi.Output[str],
    secrets: Mapping[str, pulumi.Input[str]],
    opts: pulumi.ResourceOptions,
    where: Where,
) -> Supplies:
    """Register them; what the services refer to them by."""
    own = pulumi.ResourceOptions(parent=opts.parent)
    login = _logins(spec)
    provider = docker.Provider(
        f"{name}-engine", host=where.host, ssh_opts=where.ssh_opts, registry_auth=login, opts=own
    )
    labels = _labels(cluster, where.mark)
    kept = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(provider=provider, retain_on_delete=True))
    made = {
        "agent": _reference(
            docker.ServiceConfig(f"{name}-agent", data=_encoded(application()), labels=labels, opts=kept)
        ),
        "token": _reference(_secret(f"{name}-token", labels, token, kept)),
        **{
            f"secret-{key}": _reference(_secret(f"{name}-secret-{key}", labels, value, kept))
            for key, value in secrets.items()
        },
        **_images(name, cluster, spec, _builder(where), kept),
    }
    if spec.engine.network == OVERLAY:
        pool = _pool(spec.engine.subnet)
        network = docker.Network(f"{name}-network", driver=OVERLAY, labels=labels, ipam_configs=pool, opts=kept)
        made["network"] = network.id.apply(str)
    return made


def _secret(name: str, labels: list[Any], value: pulumi.Input[str], opts: pulumi.ResourceOptions) -> docker.Secret:
    data = pulumi.Output.secret(value).apply(lambda text: _encoded(text.encode()))
    return docker.Secret(name, data=data, labels=labels, opts=opts)


def _builder(where: Where) -> bool | None:
    """Whether the engine's older builder is needed: the provider's BuildKit knows only the engine that docker commands find."""
    return None if where.host == address("") else True


def _images(
    name: str, cluster: Cluster, spec: ClusterSpec, older: bool | None, opts: pulumi.ResourceOptions
) -> Supplies:
    found: Supplies = {}
    made: dict[str, docker.RemoteImage | docker.RegistryImage] = {}
    for job, chain in images.builds(cluster, spec, images.content(spec)).items():
        before: list[pulumi.Resource] = []
        for build in chain:
            if build.name not in made:
                made[build.name] = _image(f"{name}-image-{len(made)}", cluster, spec, build, older, opts, before)
            before = [made[build.name]]
        found[f"image-{job}"] = made[chain[-1].name].name
    return found


def _image(
    name: str,
    cluster: Cluster,
    spec: ClusterSpec,
    build: images.Build,
    older: bool | None,
    opts: pulumi.ResourceOptions,
    before: list[pulumi.Resource],
) -> docker.RemoteImage | docker.RegistryImage:
    after = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=before))
    own = dict(names.labels(cluster))
    # `label` is what the provider reads where BuildKit builds, `labels` where the engine's older builder does.
    recipe = docker.RemoteImageBuildArgs(
        context=images.write_context(build), label=own, labels=own, use_legacy_builder=older
    )
    built = docker.RemoteImage(
        name,
        name=build.name,
        build=recipe,
        opts=after,
    )
    if not spec.engine.registry:
        return built
    pushed = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[built]))
    return docker.RegistryImage(f"{name}-pushed", name=build.name, keep_remotely=True, opts=pushed)


def _pool(subnet: str) -> list[docker.NetworkIpamConfigArgs] | None:
    """The gateway is Docker's own choice; it is given because otherwise each refresh would see a difference."""
    if not subnet:
        return None
    gateway = str(next(IPv4Network(subnet).hosts()))
    return [docker.NetworkIpamConfigArgs(subnet=subnet, gateway=gateway)]


def _logins(spec: ClusterSpec) -> list[docker.ProviderRegistryAuthArgs] | None:
    """The user's own `docker login`: no password goes into the state. A registry without one is one that asks for none."""
    host = spec.engine.registry.partition("/")[0]
    if not host:
        return None
    scheme = "http" if host.partition(":")[0] in ("localhost", "127.0.0.1") else "https"
    config = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"
    if config.exists() and load_config(str(config)).resolve_authconfig(host):
        return [docker.ProviderRegistryAuthArgs(address=f"{scheme}://{host}", config_file=str(config))]
    return [docker.ProviderRegistryAuthArgs(address=f"{scheme}://{host}", auth_disabled=True)]


def _labels(cluster: Cluster, mark: pulumi.Input[str]) -> list[Any]:
    """With the engine's mark among them."""
    found = {**names.labels(cluster), f"{names.PREFIX}engine": mark}
    return [{"label": key, "value": value} for key, value in found.items()]


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _reference(made: docker.ServiceConfig | docker.Secret) -> pulumi.Output[str]:
    return pulumi.Output.unsecret(pulumi.Output.concat(made.id, " ", made.name))
