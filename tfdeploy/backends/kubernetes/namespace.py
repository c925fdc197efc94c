"""The namespace that a cluster is in, at which API server: its home."""

from dataclasses import dataclass

from .kubeconfig import Kubeconfig, use_source

_DEFAULT = "default"


@dataclass(frozen=True)
class NamespaceRef:
    """A namespace at an API server."""

    namespace: str
    server: str
    """Its URL: `https://HOST:PORT`, or with a path."""

    @property
    def home(self) -> str:
        """`ClusterRef.home`. Neither the context nor the file of the login is part of it: each user has their own."""
        return f"{self.namespace}@{self.server}"


def parse_home(home: str) -> NamespaceRef:
    """The place of a home."""
    namespace, _, server = home.partition("@")
    return NamespaceRef(namespace, server)


def chosen_place(context: str = "", namespace: str = "", source: str = "") -> NamespaceRef:
    """The place that the arguments name. This process logs in there by `source` from now on.

    Raises:
        SpecError: there is none.
    """
    kubeconfig = Kubeconfig(source)
    name = kubeconfig.chosen(context)
    server = kubeconfig.server(name)
    if source:
        use_source(server, source)
    return NamespaceRef(namespace or kubeconfig.contexts[name].get("namespace") or _DEFAULT, server)
