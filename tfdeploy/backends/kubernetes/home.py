"""Where a cluster is: a namespace of the Kubernetes cluster that an API server manages. Pure."""

from dataclasses import dataclass


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
