"""Arguments that a user could give, and such as nobody should, for property tests."""

from typing import Any

from hypothesis import strategies as st

from tfdeploy.args import TensorFlowClusterArgs

_TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=12)
_DURATION = st.one_of(st.integers(0, 10_000), st.sampled_from(["0", "90s", "10m", "1h30m", "1.5"]))
_ENV = st.dictionaries(st.from_regex(r"\A[A-Z]{2,6}\Z"), _TEXT, max_size=2)
_ENDS = st.sampled_from(["any", "signal", "oom", "0", "3", "64-78", "255"])
_RESTART = st.fixed_dictionaries(
    {}, optional={"maximum": st.integers(0, 9), "backoff": _DURATION, "on": st.lists(_ENDS, max_size=3)}
)
_SIZE = st.one_of(st.integers(0, 2**40), st.sampled_from(["2GiB", "512MiB", "1.5G"]))
_IMAGE = st.sampled_from(["python", "tensorflow/tensorflow:2.20.0", f"registry:5000/a/b@sha256:{'0' * 64}"])
_CONTAINER = {
    "image": _IMAGE,
    "user": st.sampled_from(["root", "1000:1000", "me:users"]),
    "volumes": st.lists(st.sampled_from(["/a:/b:ro", "cache:/cache", "type=tmpfs,target=/scratch"]), max_size=3),
    "shm_size": _SIZE,
    "placement": st.lists(st.sampled_from(["rack:CLUSTER", "rack:MAX_PER:9", "zone:LIKE:a.*"]), max_size=2),
}


def _disks(folder: str) -> st.SearchStrategy[list[str]]:
    """Volumes with targets of their own; those of a cluster and of its jobs come together, so each has a folder."""
    numbers = st.lists(st.integers(0, 99_999), max_size=2, unique=True)
    return numbers.map(lambda found: [f"{number + 1}MiB:/{folder}/{number}" for number in found])


_INSTANCE: dict[str, st.SearchStrategy[Any]] = {
    "instance_type": st.sampled_from(["m7i.large", "g6.xlarge", "u7i-12tb.224xlarge"]),
    "ami": st.sampled_from(["ami-0123456789abcdef0", "ssm:/aws/service/x/image_id", "deep-learning"]),
    "spot": st.booleans(),
    "root_volume_size": _SIZE,
    "root_volume_type": st.sampled_from(["gp3", "io2"]),
    "ebs_volumes": _disks("disks"),
}


def _ec2(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A group `ec2`; machines have either a layout or a number."""
    layouts: st.SearchStrategy[dict[str, Any]] = st.one_of(
        st.just({}),
        st.fixed_dictionaries({"machine_layout": st.sampled_from(["per-task", "packed"])}),
        st.fixed_dictionaries({"machine_count": st.integers(1, 9)}),
    )
    return st.tuples(st.fixed_dictionaries(required, optional=optional), layouts).map(
        lambda both: {**both[0], **both[1]}
    )


_JOB = st.fixed_dictionaries(
    {},
    optional={
        "cpus": st.floats(0, 2),
        "memory": _SIZE,
        "gpus": st.integers(0, 2),
        "nice": st.integers(0, 19),
        "port": st.integers(1, 65_000),
        "env": _ENV,
        "restart": _RESTART,
        "container": st.fixed_dictionaries({}, optional=_CONTAINER),
        "ec2": _ec2({}, {**_INSTANCE, "ebs_volumes": _disks("own")}),
    },
)
_FLEET: dict[str, st.SearchStrategy[Any]] = {
    "region": st.sampled_from(["us-west-2", "us-gov-east-1"]),
    "vpc_id": st.just("vpc-0a1b"),
    "subnet_id": st.just("subnet-0a1b"),
    "ssh_public_key": _TEXT,
    "ssh_user": st.sampled_from(["ec2-user", "ubuntu"]),
    "ssh_cidrs": st.lists(st.sampled_from(["203.0.113.7/32", "2001:db8::/64", "anywhere"]), max_size=3),
    "placement_group": _TEXT,
    "instance_profile": _TEXT,
    "efs": st.sampled_from(["new", "fs-0a1b"]),
    "tags": st.dictionaries(st.from_regex(r"\A[a-z]{1,6}\Z"), _TEXT, max_size=2),
    "max_machines": st.integers(1, 1_000),
    "max_lifetime": st.one_of(st.integers(1, 10_000), st.sampled_from(["never", "72h"])),
    "idle_timeout": st.one_of(st.integers(1, 10_000), st.sampled_from(["never", "15m"])),
    "budget": st.floats(0.01, 9_999),
    "connectivity": st.sampled_from(["public", "private", "ssm"]),
    "retain_record": st.booleans(),
}
_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), _TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXT, inner, max_size=3)),
    max_leaves=5,
)

_IMAGES = st.one_of(
    st.fixed_dictionaries({}, optional=_CONTAINER),
    st.fixed_dictionaries({"build": _TEXT}, optional={"user": _CONTAINER["user"]}),
)
"""`image` and `build` exclude each other."""

_NETWORK: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.just({"network": "host"}),
    st.fixed_dictionaries({"subnet": st.just("10.20.0.0/24")}, optional={"network": st.just("overlay")}),
)

_SHARED = st.fixed_dictionaries(
    {},
    optional={
        "registry": st.sampled_from(["registry.example.com/team", "localhost:5000"]),
        "retain_volumes": st.booleans(),
    },
)

_HOST = st.fixed_dictionaries(
    {}, optional={"host": st.sampled_from(["unix:///run/docker.sock", "ssh://me@manager", "tcp://10.0.0.1:2376"])}
)

_ANY_BACKEND = st.fixed_dictionaries(
    {"command": st.lists(_TEXT, max_size=3).map(lambda rest: ["python", *rest]), "workers": st.integers(1, 4)},
    optional={
        "code": _TEXT,
        "requirements": st.lists(st.sampled_from(["six", "pandas==2.2.3"]), max_size=2),
        "ps": st.integers(0, 3),
        "chief": st.sampled_from([False, True, 0, 1]),
        "evaluator": st.sampled_from([False, True, 0, 1]),
        "gpu_workers": st.integers(0, 2),
        "tensorboard": st.booleans(),
        "jobs": st.fixed_dictionaries({}, optional={"worker": _JOB}),
        "metrics": st.dictionaries(_TEXT, st.sampled_from([r"accuracy: (\S+)", "loss"]), max_size=2),
        "env": _ENV,
        "data_dir": _TEXT,
        "train_dir": _TEXT,
        "context": st.dictionaries(_TEXT, _JSON, max_size=3),
        "flags": st.sampled_from(["auto", "always", "never"]),
        "success": st.sampled_from(["worker-0", "all-workers"]),
        "restart": _RESTART,
        "stop_grace_period": _DURATION,
        "wait": _DURATION,
        "start_timeout": _DURATION,
        "retention": _DURATION,
        "run_id": _TEXT,
        "resume_from": st.one_of(st.just(""), st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,12}\Z")),
        "log_lines": st.integers(0, 1_000),
        "backend": st.sampled_from(["local", "docker", "ec2"]),
        "docker": _HOST,
        "ec2": _ec2({}, {**_INSTANCE, **_FLEET}),
        "container": st.builds(lambda *parts: {**parts[0], **parts[1], **parts[2]}, _IMAGES, _NETWORK, _SHARED),
    },
)

LIKELY: st.SearchStrategy[dict[str, Any]] = _ANY_BACKEND
"""Every one of these is a cluster."""

_ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(["1", "10m", "2GiB", "any", "chief", "worker-0", "3-4", "ps", "(", 10**40]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["ps", "worker", "gpu_worker", "on", "port", "env", "A", ""]), inner, max_size=3
        ),
    ),
    max_leaves=5,
)

SPOILT: st.SearchStrategy[dict[str, Any]] = st.builds(
    lambda likely, spoilt: {**likely, **spoilt},
    LIKELY,
    st.dictionaries(st.sampled_from(sorted(TensorFlowClusterArgs.__annotations__)), _ANYTHING, max_size=2),
)
"""Some of these are a cluster, most are not."""
