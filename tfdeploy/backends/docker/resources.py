"""What Pulumi's Docker provider creates for a cluster: network, secrets, the agent as a config, images.

All of it has `retain_on_delete`, and `cleanup` removes it by its labels after everything else. So `destroy` does not fail because
an engine no longer exists, or because somebody removed an object by hand.
"""

import base64
import os
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pulumi
import pulumi_docker as docker
from docker.auth import load_config

from ...spec.cluster import ClusterSpec
from ...spec.docker import OVERLAY
from ..base import ClusterRef, DependencyRequest
from ..image_content import context_hash
from ..zipapp import application
from . import containers
from .engine.engine import engine_address
from .labels import LABEL_PREFIX, cluster_labels
from .requirements_image import RequirementsImage

_SWARM_LABEL = f"{LABEL_PREFIX}swarm"
"""Of networks, configs and secrets: identifies the Swarm that they were created on."""


@dataclass(frozen=True)
class EngineTarget:
    """The engine that the provider uses."""

    host: pulumi.Input[str]
    swarm: pulumi.Input[str]
    """Identifies its Swarm: when it changes, everything is replaced."""
    ssh_opts: Sequence[str] | None = None


def register_dependencies(
    request: DependencyRequest[Any], target: EngineTarget, **more: Any
) -> dict[str, dict[str, Any]]:
    """Register the resources; for each job its `ContainerDependencies`, with `more`."""
    name, cluster, spec, opts = request.name, request.cluster, request.spec, request.opts
    provider_opts = pulumi.ResourceOptions(parent=opts.parent)
    auth = _registry_auth(spec)
    provider = docker.Provider(
        f"{name}-engine", host=target.host, ssh_opts=target.ssh_opts, registry_auth=auth, opts=provider_opts
    )
    labels = _labels(cluster, target.swarm)
    retained = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(provider=provider, retain_on_delete=True))
    # It is no secret, but `pulumi preview --diff` computes for minutes how two such texts differ, unless it may not show them.
    archive = pulumi.Output.secret(_base64(application()))
    agent = docker.ServiceConfig(f"{name}-agent", data=archive, labels=labels, opts=retained)
    shared: dict[str, Any] = {
        "agent": _reference(agent),
        "token": _reference(_secret(f"{name}-token", labels, request.token, retained)),
        "secrets": {
            key: _reference(_secret(f"{name}-secret-{key}", labels, value, retained))
            for key, value in request.secrets.items()
        },
        **more,
    }
    if spec.container.network == OVERLAY:
        network = _network(name, labels, spec, retained)
        shared["network"] = network.id.apply(str)
    built = _ImageBuilder(name, cluster, spec, target, opts, retained).register()
    return {job.name: {**shared, **({"image": built[job.name]} if job.name in built else {})} for job in spec.jobs}


def _network(name: str, labels: list[Any], spec: ClusterSpec, opts: pulumi.ResourceOptions) -> docker.Network:
    """The overlay network. An encrypted one is another resource: the engine adds options of its choice to those that are given,
    so that a refresh would show a difference, unless a change of them is ignored."""
    is_encrypted = spec.docker.encrypted
    ignored = pulumi.ResourceOptions(ignore_changes=["options"]) if is_encrypted else pulumi.ResourceOptions()
    return docker.Network(
        f"{name}-network-encrypted" if is_encrypted else f"{name}-network",
        driver=OVERLAY,
        labels=labels,
        ipam_configs=_ipam_config(spec.container.subnet),
        options={"encrypted": "true"} if is_encrypted else None,
        opts=pulumi.ResourceOptions.merge(opts, ignored),
    )


def _secret(name: str, labels: list[Any], value: pulumi.Input[str], opts: pulumi.ResourceOptions) -> docker.Secret:
    data = pulumi.Output.secret(value).apply(lambda text: _base64(text.encode()))
    return docker.Secret(name, data=data, labels=labels, opts=opts)


_Image = docker.RemoteImage | docker.RegistryImage | RequirementsImage


@dataclass(frozen=True)
class _ImageBuilder:
    """Registers the images that are built for a cluster."""

    name: str
    cluster: ClusterRef
    spec: ClusterSpec
    target: EngineTarget
    opts: pulumi.ResourceOptions
    """Of dynamic resources."""
    docker_opts: pulumi.ResourceOptions
    """Of those of Pulumi's Docker provider."""

    def register(self) -> dict[str, pulumi.Output[str]]:
        """The image of each job for which one is built."""
        references: dict[str, pulumi.Output[str]] = {}
        built: dict[str, _Image] = {}
        for job, chain in containers.builds(self.cluster, self.spec, context_hash(self.spec)).items():
            bases: list[pulumi.Resource] = []
            for build in chain:
                if build.name not in built:
                    built[build.name] = self._image(f"{self.name}-image-{len(built)}", build, bases)
                bases = [built[build.name]]
            references[job] = built[chain[-1].name].name
        return references

    def _image(self, name: str, build: containers.Build, bases: list[pulumi.Resource]) -> _Image:
        after = pulumi.ResourceOptions(depends_on=bases)
        labels = dict(cluster_labels(self.cluster))
        image = (
            self._folder_image(name, build, labels, after) if build.context else self._layer(name, build, labels, after)
        )
        if not self.spec.container.registry:
            return image
        push_opts = pulumi.ResourceOptions.merge(self.docker_opts, pulumi.ResourceOptions(depends_on=[image]))
        return docker.RegistryImage(f"{name}-pushed", name=build.name, keep_remotely=True, opts=push_opts)

    def _folder_image(
        self, name: str, build: containers.Build, labels: dict[str, str], after: pulumi.ResourceOptions
    ) -> docker.RemoteImage:
        # The provider reads `label` where BuildKit builds, and `labels` where the engine's legacy builder does. Its BuildKit always
        # uses the engine that is the default of docker commands.
        build_args = docker.RemoteImageBuildArgs(
            context=str(Path(build.context).absolute()),
            label=labels,
            labels=labels,
            use_legacy_builder=None if self.target.host == engine_address("") else True,
        )
        opts = pulumi.ResourceOptions.merge(self.docker_opts, after)
        return docker.RemoteImage(name, name=build.name, build=build_args, opts=opts)

    def _layer(
        self, name: str, build: containers.Build, labels: dict[str, str], after: pulumi.ResourceOptions
    ) -> RequirementsImage:
        retained = pulumi.ResourceOptions.merge(self.opts, pulumi.ResourceOptions(retain_on_delete=True))
        opts = pulumi.ResourceOptions.merge(retained, after)
        return RequirementsImage(name, self.cluster, build, labels, self.target.swarm, opts)


def _ipam_config(subnet: str) -> list[docker.NetworkIpamConfigArgs] | None:
    """The gateway is the one that Docker would choose: without it, each refresh would show a difference."""
    if not subnet:
        return None
    gateway = str(next(IPv4Network(subnet).hosts()))
    return [docker.NetworkIpamConfigArgs(subnet=subnet, gateway=gateway)]


def _registry_auth(spec: ClusterSpec) -> list[docker.ProviderRegistryAuthArgs] | None:
    """The user's `docker login`, so that no password is in the state. Without one, the registry needs none."""
    host = spec.container.registry.partition("/")[0]
    if not host:
        return None
    scheme = "http" if host.partition(":")[0] in ("localhost", "127.0.0.1") else "https"
    config = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"
    if config.exists() and load_config(str(config)).resolve_authconfig(host):
        return [docker.ProviderRegistryAuthArgs(address=f"{scheme}://{host}", config_file=str(config))]
    return [docker.ProviderRegistryAuthArgs(address=f"{scheme}://{host}", auth_disabled=True)]


def _labels(cluster: ClusterRef, swarm: pulumi.Input[str]) -> list[Any]:
    labels = {**cluster_labels(cluster), _SWARM_LABEL: swarm}
    return [{"label": key, "value": value} for key, value in labels.items()]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _reference(created: docker.ServiceConfig | docker.Secret) -> dict[str, pulumi.Output[str]]:
    """A `swarm.services.Reference`; only the content of a secret is secret."""
    return {"id": pulumi.Output.unsecret(created.id), "name": pulumi.Output.unsecret(created.name)}
