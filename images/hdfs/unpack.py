"""Unpack what a client needs of a Hadoop release: `unpack.py URL SHA512 FOLDER`; an empty URL makes an empty folder."""

import hashlib
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

WANTED = (
    "LICENSE",
    "NOTICE",
    "etc/hadoop/",
    "lib/native/libhadoop.so",
    "lib/native/libhdfs.so",
    "share/hadoop/common/",
    "share/hadoop/hdfs/",
)
UNWANTED = ("-tests.jar", "/jdiff/", "/sources/", "/webapps/", "/webapps")
BLOCK = 1 << 20


def members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The files that are wanted, their names without the release's folder; they belong to root."""
    for member in archive:
        name = member.name.partition("/")[2]
        if name.startswith(WANTED) and not any(part in name for part in UNWANTED):
            member.name = name
            member.uid = member.gid = 0
            member.uname = member.gname = "root"
            yield member


def main(url: str, expected: str, folder: Path) -> None:
    """Nothing is unpacked before the whole archive has the checksum expected."""
    folder.mkdir(parents=True)
    if not url:
        return
    with tempfile.TemporaryFile() as file:
        found = hashlib.sha512()
        with urllib.request.urlopen(url, timeout=60) as answer:
            while block := answer.read(BLOCK):
                found.update(block)
                file.write(block)
        if found.hexdigest() != expected.lower():
            sys.exit(f"{url}: its SHA-512 is {found.hexdigest()}, not {expected}")
        file.seek(0)
        with tarfile.open(fileobj=file) as archive:
            archive.extractall(folder, members(archive))  # a checked archive


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
