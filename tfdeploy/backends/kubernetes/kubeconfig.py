"""Which API servers the user's kubeconfig has, and how this user logs in. Reading it and logging in is the official client's work."""

import base64
import hashlib
import io
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from kubernetes.client import Configuration
from kubernetes.config import ConfigException, incluster_config, kube_config

from ...agent.system.files import write_whole
from ...errors import SpecError, nearest
from ...paths import make_private, state_folder

_WHERE = "kubernetes.context"
_IN_CLUSTER = "in-cluster"
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

Entries = dict[str, Mapping[str, Any]]

# The client reports a login command that fails by its root logger, and then sends requests without a credential.
logging.getLogger("kubernetes").setLevel(logging.WARNING)


class Kubeconfig:
    """The contexts of the user: of a text, of a file, or of the files that `KUBECONFIG` names."""

    def __init__(self, source: str = "") -> None:
        """`source` is a path or a text; by default the user's files. Inside a pod without any, its service account.

        Raises:
            SpecError: it cannot be read.
        """
        paths = source or os.environ.get("KUBECONFIG", "") or "~/.kube/config"
        self._source = io.StringIO(source) if is_content(source) else paths
        try:
            merger = kube_config.KubeConfigMerger(self._source)
        except (ConfigException, OSError, yaml.YAMLError) as error:
            raise SpecError(_WHERE, f"the kubeconfig cannot be read: {error}", "Check `kubectl config view`.") from None
        self._config = {key: _plain(value) for key, value in (_plain(merger.config) or {}).items()}
        # For kubectl the first file that names a current context decides; for the client, the last.
        named = (content.get("current-context") for content in (*merger.config_files.values(), self._config))
        self.current = str(next(filter(None, named), ""))
        self.contexts = self._entries("contexts", "context")
        self._clusters = self._entries("clusters", "cluster")
        if not self.contexts and os.environ.get("KUBERNETES_SERVICE_HOST") and _SERVICE_ACCOUNT.exists():
            self._add_service_account()

    def _entries(self, key: str, member: str) -> Entries:
        return {item["name"]: _plain(item[member]) or {} for item in self._config.get(key) or ()}

    def _add_service_account(self) -> None:
        configuration = Configuration()
        incluster_config.load_incluster_config(configuration)
        self._clusters = {_IN_CLUSTER: {"server": configuration.host}}
        namespace = (_SERVICE_ACCOUNT / "namespace").read_text()
        self.contexts = {_IN_CLUSTER: {"cluster": _IN_CLUSTER, "namespace": namespace}}
        self.current = _IN_CLUSTER

    def server(self, context: str) -> str:
        """The URL of the API server of a context; empty where it has none."""
        cluster = self._clusters.get(self.contexts[context].get("cluster", ""), {})
        return str(cluster.get("server", "")).rstrip("/")

    def chosen(self, context: str) -> str:
        """The context of that name; by default the current one.

        Raises:
            SpecError: there is no such context, or it names no API server.
        """
        name = context or self.current
        if not name:
            wrong = "there is no current context" if self.contexts else "no kubeconfig has a context"
            remedy = "Set kubernetes.context, or run `kubectl config use-context NAME`. KUBECONFIG names another file."
            raise SpecError(_WHERE, wrong, remedy)
        if name not in self.contexts:
            raise SpecError(_WHERE, f"there is no context {name!r}", nearest(name, [*self.contexts] or ["(none)"]))
        if not self.server(name):
            wrong = f"the context {name!r} does not name a cluster with a server"
            raise SpecError(_WHERE, wrong, "Check `kubectl config view`.")
        return name

    def context_of(self, server: str) -> str:
        """The context by which this user logs in at a server: the current one if it is of that server, else the first that is.

        Raises:
            SpecError: none is.
        """
        contexts = [self.current, *self.contexts] if self.current in self.contexts else [*self.contexts]
        for name in contexts:
            if self.server(name) == server.rstrip("/"):
                return name
        wrong = f"no context of the kubeconfig is one of {server}"
        raise SpecError(_WHERE, wrong, "Add it, or let KUBECONFIG name the file that has it.")

    def configuration(self, context: str) -> Configuration:
        """How the official client connects and logs in by a context.

        Raises:
            SpecError: the context is not complete.
        """
        configuration = Configuration()
        try:
            if context == _IN_CLUSTER:
                incluster_config.load_incluster_config(configuration)
            else:
                config = kube_config.KubeConfigMerger(self._source).config
                self._keep_in_memory(config, context)
                kube_config.KubeConfigLoader(config, active_context=context).load_and_set(configuration)
        except (ConfigException, ValueError) as error:
            raise SpecError(_WHERE, f"the context {context!r}: {error}", "Check `kubectl config view`.") from None
        return configuration

    def _keep_in_memory(self, config: Any, context: str) -> None:
        """Replace the key and the certificates that a kubeconfig contains by files in the memory of this process. The client would
        write temporary files, which remain where the process is killed."""
        used = self.contexts[context]
        for section, member, keys in (
            ("users", "user", ("client-certificate", "client-key")),
            ("clusters", "cluster", ("certificate-authority",)),
        ):
            items = [_plain(item) for item in _plain(config).get(section) or ()]
            for entry in [_plain(item[member]) or {} for item in items if item["name"] == used.get(member)]:
                for key in keys:
                    if entry.get(f"{key}-data") and hasattr(os, "memfd_create"):  # only Linux has it
                        entry[key] = _memory_file(base64.b64decode(entry.pop(f"{key}-data")))


@cache
def _memory_file(content: bytes) -> str:
    """The path of a file with this content, which ends with this process and its forks."""
    descriptor = os.memfd_create("tfdeploy")
    os.write(descriptor, content)
    return f"/proc/self/fd/{descriptor}"


def is_content(source: str) -> bool:
    """Whether this is a kubeconfig, and not the path of one."""
    return "\n" in source or source.lstrip().startswith("{")


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, kube_config.ConfigNode) else value


_sources: dict[str, str] = {}
"""Server to the argument `kubernetes.kubeconfig` of a program that runs in this process."""


def use_source(server: str, source: str) -> None:
    """Log in at a server by this kubeconfig in this process, from now on."""
    _sources[server] = source


def store_source(server: str, source: str) -> None:
    """Have other processes of this user log in at a server by this kubeconfig too: the command, and `pulumi destroy`."""
    make_private(_stored(server).parent)
    write_whole(_stored(server), source if is_content(source) else str(Path(source).expanduser().absolute()))


def source_of(server: str) -> str:
    """The kubeconfig by which this user logs in at a server, as `Kubeconfig` takes it; empty for the user's files."""
    with suppress(FileNotFoundError):
        return _sources.get(server) or _stored(server).read_text()
    return ""


def _stored(server: str) -> Path:
    return state_folder() / "kubernetes" / f"login-{hashlib.sha256(server.encode()).hexdigest()[:16]}"
