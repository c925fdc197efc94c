"""The models of AWS's services, read once by a process."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

from botocore.loaders import JSONFileLoader


@contextmanager
def read_once() -> Iterator[None]:
    """Each session of boto3 would read them again, for a third of a second."""
    read = cache(JSONFileLoader().load_file)

    def load_file(_: JSONFileLoader, path: str) -> Any:
        return read(path)

    with patch.object(JSONFileLoader, "load_file", load_file):
        yield
