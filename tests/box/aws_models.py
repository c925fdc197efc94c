"""The models of AWS's services, read once by a process."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

from botocore.loaders import JSONFileLoader, Loader


@contextmanager
def read_once() -> Iterator[None]:
    """Each session of boto3 would read them again, for a third of a second, and look in 500 folders for each of its clients."""
    read, services = cache(JSONFileLoader().load_file), Loader.list_available_services
    known: dict[tuple[str, ...], list[str]] = {}

    def load_file(_: JSONFileLoader, path: str) -> Any:
        return read(path)

    def list_available_services(loader: Loader, type_name: str) -> list[str]:
        key = (type_name, *loader.search_paths)
        if key not in known:
            known[key] = services(loader, type_name)
        return known[key]

    with (
        patch.object(JSONFileLoader, "load_file", load_file),
        patch.object(Loader, "list_available_services", list_available_services),
    ):
        yield
