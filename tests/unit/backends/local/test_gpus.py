"""Which GPUs a shell allows."""

import pytest

from tfdeploy.backends.local.gpus import allowed_gpus

DEVICES = [("0", "GPU-aaaa-1"), ("1", "GPU-aabb-2"), ("2", "GPU-cccc-3"), ("3", "GPU-dddd-4")]


@pytest.mark.parametrize(
    ("listed", "allowed"),
    [
        (None, ("0", "1", "2", "3")),
        ("", ()),
        ("2,3", ("2", "3")),
        (" 3 , 1", ("3", "1")),
        ("GPU-cccc-3", ("GPU-cccc-3",)),
        ("GPU-c,0", ("GPU-c", "0")),
        ("GPU-aa,0", ()),
        ("1,-1,2", ("1",)),
        ("0,9,1", ("0",)),
        ("2,GPU-cccc-3,1", ("2",)),
        ("MIG-1f", ("MIG-1f",)),
    ],
)
def test_a_list_is_read_as_cuda_reads_it(listed: str | None, allowed: tuple[str, ...]) -> None:
    assert allowed_gpus(DEVICES, listed) == allowed
    assert allowed_gpus((), "0,1") == ()
