"""A cluster's certificates, and files with which clients log in."""

import base64
import datetime
import ipaddress
import json
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID = datetime.timedelta(days=2)
ADMINISTRATORS = ("system:masters",)


class Authority:
    """Signs certificates of servers and of users; the API server admits who has one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._signed(self._key.public_key(), "tfdeploy-test", (), is_authority=True)
        _write(folder / "ca.crt", _pem(self._certificate))

    def server(self, name: str, addresses: Sequence[str]) -> None:
        """Write NAME.crt and NAME.key of a server with these addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        _write(self.folder / f"{name}.key", _secret(key))
        _write(self.folder / f"{name}.crt", _pem(self._signed(key.public_key(), name, (), addresses)))

    def kubeconfig(self, server: str, user: str, groups: Sequence[str], namespace: str = "default") -> str:
        """What leads a client to a server as this user, by a client certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(key.public_key(), user, groups)
        login = {"client-certificate-data": _base64(_pem(certificate)), "client-key-data": _base64(_secret(key))}
        return kubeconfig(server, (self.folder / "ca.crt").read_bytes(), login, namespace)

    def _signed(
        self,
        key: ec.EllipticCurvePublicKey,
        name: str,
        groups: Sequence[str],
        addresses: Sequence[str] = (),
        is_authority: bool = False,
    ) -> x509.Certificate:
        subject = x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
                x509.NameAttribute(NameOID.COMMON_NAME, name),
            ]
        )
        issuer = subject if is_authority else self._certificate.subject
        begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
        builder = x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number(), begin, begin + VALID)
        builder = builder.add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        if addresses:
            names = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def kubeconfig(server: str, authority: bytes, login: dict[str, str], namespace: str = "default") -> str:
    """The file of a client of one cluster; JSON is YAML."""
    cluster = {"server": server, "certificate-authority-data": _base64(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": login}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}],
        "current-context": "test",
    }
    return json.dumps(content, indent=1)


def write_token_key(folder: Path) -> None:
    """Write sa.key and sa.pub, with which tokens of service accounts are signed and checked."""
    key = ec.generate_private_key(ec.SECP256R1())
    _write(folder / "sa.key", _secret(key))
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    _write(folder / "sa.pub", key.public_key().public_bytes(serialization.Encoding.PEM, public))


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _secret(key: ec.EllipticCurvePrivateKey) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _write(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
