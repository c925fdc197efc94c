"""The arguments of a `TensorFlowCluster`, each with the first sentence of its text: docs/reference.md has all of it.

Outputs of other resources are valid in all of them; groups, such as `ec2`, are mappings with members that may be Outputs.
Generated from the declarations in `spec/` by `python -m tools.reference`; a test compares.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import pulumi

# Pulumi's component analyzer takes enums and no `Literal`; type checkers take the plain strings that people write.
if TYPE_CHECKING:
    FlagRule = Literal["auto", "always", "never"]
    SuccessRule = Literal["chief", "worker-0", "all-workers"]
    Backend = Literal["local", "docker", "ec2", "kubernetes"]
    MachineLayout = Literal["per-task", "packed"]
    Network = Literal["overlay", "host"]
    Connectivity = Literal["public", "private", "ssm"]
else:

    class FlagRule(StrEnum):
        """Whether the four flags are appended to the command."""

        AUTO = "auto"
        ALWAYS = "always"
        NEVER = "never"

    class SuccessRule(StrEnum):
        """Which tasks must succeed for the run to succeed."""

        CHIEF = "chief"
        WORKER_0 = "worker-0"
        ALL_WORKERS = "all-workers"

    class Backend(StrEnum):
        """Where tasks run."""

        LOCAL = "local"
        DOCKER = "docker"
        EC2 = "ec2"
        KUBERNETES = "kubernetes"

    class MachineLayout(StrEnum):
        """How tasks share EC2 instances."""

        PER_TASK = "per-task"
        PACKED = "packed"

    class Network(StrEnum):
        """The network of containers."""

        OVERLAY = "overlay"
        HOST = "host"

    class Connectivity(StrEnum):
        """How tfdeploy connects to EC2 instances."""

        PUBLIC = "public"
        PRIVATE = "private"
        SSM = "ssm"


class ElasticArgs(TypedDict, total=False):
    """Workers that are added, removed or lost while the others train."""

    max: pulumi.Input[int]
    """The highest number of workers."""


class RestartArgs(TypedDict, total=False):
    """When a failed task is restarted."""

    maximum: pulumi.Input[int]
    """The highest number of restarts of a task in one run; 0 disables restarts."""
    backoff: pulumi.Input[str]
    """The delay before the second restart; the first is immediate."""
    on: pulumi.Input[Sequence[pulumi.Input[str]]]
    """The failures after which a task is restarted: "any", "signal", "oom", an exit code ("3") or a range of exit codes ("64-78")."""


class JobContainerArgs(TypedDict, total=False):
    """The containers of one job."""

    image: pulumi.Input[str]
    """The image of the tasks; a new one is a new run."""
    user: pulumi.Input[str]
    """The user of the containers, as in `docker run --user`; by default the image's."""
    volumes: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Mounts of the tasks: "SOURCE:TARGET[:ro]", where SOURCE is a folder of the machine or the name of a volume, or
    "type=volume,source=NAME,target=/FOLDER,volume-opt=…"."""
    shm_size: pulumi.Input[str]
    """The size of /dev/shm, such as "1GiB"; 0 is Docker's default of 64 MiB."""
    placement: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Constraints on the machine of a task: FIELD:OPERATOR[:PARAMETER] with Marathon's operators UNIQUE, CLUSTER, GROUP_BY, LIKE,
    UNLIKE, MAX_PER and IS."""


class JobEc2Args(TypedDict, total=False):
    """The EC2 instances of one job."""

    instance_type: pulumi.Input[str]
    """The instance type, such as "m7i.large", or "g6.xlarge" for jobs with GPUs."""
    ami: pulumi.Input[str]
    """The machine image: "ami-…"; "ssm:/PARAMETER", a public parameter that contains one; "deep-learning" for Amazon's Deep
    Learning AMI."""
    spot: pulumi.Input[bool]
    """Whether spot instances are used, which are cheaper and can be interrupted."""
    machine_layout: pulumi.Input[MachineLayout]
    """How tasks share machines."""
    machine_count: pulumi.Input[int]
    """The number of machines, which the tasks share."""
    root_volume_size: pulumi.Input[str]
    """The size of the root volume."""
    root_volume_type: pulumi.Input[str]
    """The type of the root volume."""
    ebs_volumes: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Further volumes of each machine: "SIZE:TARGET", such as "200GiB:/scratch", for a new one that is deleted with its machine;
    "vol-…:TARGET" for an existing one, which is retained and can have only one machine."""


class JobKubernetesArgs(TypedDict, total=False):
    """The pods of one job, on the backend "kubernetes"."""

    node_selector: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels that the nodes of the tasks must have."""
    tolerations: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Taints of nodes that the tasks tolerate, as `kubectl taint` writes them: "KEY=VALUE:EFFECT", "KEY:EFFECT", "KEY" for every
    value and effect; "*" for all taints."""
    priority_class: pulumi.Input[str]
    """The priority class of the pods."""
    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Additional labels of the pods."""
    annotations: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Additional annotations of the pods."""


class JobArgs(TypedDict, total=False):
    """Settings of one job."""

    cpus: pulumi.Input[float]
    """CPUs reserved for each task, in a container also its limit; 0 sets neither."""
    memory: pulumi.Input[str]
    """The memory limit of each task, such as "2GiB"; a task above it is killed and reported as `out of memory`. 0 means no limit."""
    gpus: pulumi.Input[int]
    """GPUs of each task, which it sees by `CUDA_VISIBLE_DEVICES`."""
    nice: pulumi.Input[int]
    """The niceness of each task: while other programs need the processors, Linux gives this one less of them; 19 gives the least."""
    port: pulumi.Input[int]
    """The port of task 0; task 1 has the next one, and so on."""
    env: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Environment variables of this job, in addition to the cluster's; the same name overrides."""
    restart: RestartArgs
    """This job's restart policy; each setting overrides the cluster's."""
    required: pulumi.Input[bool]
    """Whether the run fails if a task of this job fails for good."""
    container: JobContainerArgs
    """This job's containers."""
    ec2: JobEc2Args
    """This job's EC2 instances."""
    kubernetes: JobKubernetesArgs
    """This job's pods on Kubernetes."""


class ServiceArgs(JobArgs, total=False):
    """A program that the training needs. Its further settings are those of a job."""

    command: pulumi.Input[Sequence[pulumi.Input[str]]]
    """The program and its arguments, with placeholders as in the cluster's command."""
    count: pulumi.Input[int]
    """The number of its tasks."""


class DataServiceArgs(TypedDict, total=False):
    """The tasks of tf.data service."""

    workers: pulumi.Input[int]
    """The number of its workers: the tasks data-worker-0, … Another number restarts no other task."""


class ContainerArgs(JobContainerArgs, total=False):
    """Containers, on the backends "docker", "ec2" and "kubernetes"."""

    build: pulumi.Input[str]
    """A folder with a Dockerfile, relative to the Pulumi program."""
    registry: pulumi.Input[str]
    """The registry and path for built images, such as "registry.example.com/team"."""
    network: pulumi.Input[Network]
    """The network of the containers."""
    subnet: pulumi.Input[str]
    """The addresses of the overlay network, such as "10.20.0.0/24"; by default Docker chooses them."""
    retain_volumes: pulumi.Input[bool]
    """Whether `destroy` retains what may be the only copy of a checkpoint: the volume of the default `train_dir`, and on "ec2" the
    file system of `efs="new"`."""


class DockerArgs(TypedDict, total=False):
    """The Docker engine, on the backend "docker"."""

    host: pulumi.Input[str]
    """The engine that manages the Swarm: "unix://…", "ssh://USER@HOST" or "tcp://HOST:PORT"."""
    encrypted: pulumi.Input[bool]
    """Whether the traffic of the overlay network is encrypted between machines."""
    cleanup_image: pulumi.Input[str]
    """The image that removes volumes of the cluster from machines other than the manager, which needs their Docker socket: for
    `retain_volumes=False` and for `tfdeploy restart --without-data`."""


class Ec2Args(JobEc2Args, total=False):
    """EC2 instances and what they need, on the backend "ec2"."""

    region: pulumi.Input[str]
    """The region, such as "us-west-2"; by default that of the AWS provider: `aws:region`, else the AWS CLI's default."""
    max_machines: pulumi.Input[int]
    """The highest number of machines; a plan with more is refused."""
    max_lifetime: pulumi.Input[str]
    """The time after which a machine terminates itself in any case; "never" disables it."""
    idle_timeout: pulumi.Input[str]
    """The time without tasks after which a machine terminates itself; "never" disables it."""
    budget: pulumi.Input[float]
    """The highest cost of the cluster's machines, in USD."""
    vpc_id: pulumi.Input[str]
    """The VPC; by default the region's default VPC."""
    subnet_id: pulumi.Input[str]
    """The subnet; by default one of the VPC in a zone that offers all instance types."""
    ssh_public_key: pulumi.Input[str]
    """The file with your SSH public key, which the machines accept beside the cluster's own key; by default ~/.ssh/id_ed25519.pub
    or id_rsa.pub."""
    ssh_user: pulumi.Input[str]
    """The user of the machine image."""
    ssh_cidrs: pulumi.Input[Sequence[pulumi.Input[str]]]
    """The addresses that may connect by SSH, as CIDRs, such as "203.0.113.7/32"; "anywhere" for all."""
    connectivity: pulumi.Input[Connectivity]
    """How tfdeploy connects to the machines."""
    placement_group: pulumi.Input[str]
    """The name of an existing placement group for the machines."""
    instance_profile: pulumi.Input[str]
    """An instance profile instead of the roles that tfdeploy creates."""
    efs: pulumi.Input[str]
    """A file system that all machines share, for `train_dir`: "new" for one of the cluster, or the id of an existing one, "fs-…"."""
    retain_record: pulumi.Input[bool]
    """Whether `destroy` retains the record of runs in S3."""
    tags: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Additional tags of all AWS resources."""


class KubernetesArgs(JobKubernetesArgs, total=False):
    """The Kubernetes cluster and the pods, on the backend "kubernetes"."""

    context: pulumi.Input[str]
    """The context of the kubeconfig; by default its current one."""
    kubeconfig: pulumi.Input[str]
    """The kubeconfig: the path of a file, or its content as YAML or JSON, such as the Output of a Kubernetes cluster that the same
    program creates."""
    namespace: pulumi.Input[str]
    """An existing namespace; by default that of the context, else "default"."""
    service_account: pulumi.Input[str]
    """The service account of the pods, for example for access to a bucket; by default "default"."""
    image_pull_secrets: pulumi.Input[Sequence[pulumi.Input[str]]]
    """The Secrets of the namespace with the credentials of image registries."""
    queue: pulumi.Input[str]
    """The LocalQueue of Kueue that admits the tasks."""
    storage_class: pulumi.Input[str]
    """The class of the record's volume, and of one for checkpoints, which is created only with it."""


class TensorFlowClusterArgs(TypedDict, total=False):
    """The training program, the number of tasks, and where they run."""

    command: pulumi.Input[Sequence[pulumi.Input[str]]]
    """The program and its arguments."""
    flags: pulumi.Input[FlagRule]
    """Whether the flags --job_name, --task_index, --ps_hosts and --worker_hosts are appended to the command."""
    code: pulumi.Input[str]
    """A folder, relative to the Pulumi program, that is copied to every task and is its working directory."""
    standalone_servers: pulumi.Input[bool]
    """Whether tasks only run a TensorFlow gRPC server, for a client program that you run."""
    requirements: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Python packages in addition to TensorFlow, as in a requirements file: "pandas==2.2.3", or "NAME @ URL" of a wheel, an archive
    or a Git repository, which pip downloads with the permissions of the user that runs pip."""
    ps: pulumi.Input[int]
    """The number of parameter servers."""
    workers: pulumi.Input[int]
    """The number of workers."""
    elastic: ElasticArgs
    """That `workers` may change, up to a maximum, during the training: no other task restarts, and the loss of a worker other than
    worker 0 never fails the run."""
    gpu_workers: pulumi.Input[int]
    """The number of workers with GPUs: the tasks gpu-worker-0, … TensorFlow sees them as workers, after those of `workers`."""
    chief: pulumi.Input[bool]
    """Whether there is a chief."""
    tf_config_master: pulumi.Input[bool]
    """Whether `TF_CONFIG` calls the chief `master`, as programs for TensorFlow 1 expect."""
    evaluator: pulumi.Input[bool]
    """Whether there is an evaluator, which is not part of the cluster spec."""
    tensorboard: pulumi.Input[bool]
    """Whether TensorBoard runs on `train_dir` as the task tensorboard-0, on port 6006 (on "local" on another one if that is in use;
    see the output `endpoints`)."""
    jobs: dict[str, JobArgs]
    """Settings of single jobs: chief, ps, worker, gpu_worker, evaluator, tensorboard, data_dispatcher, data_worker."""
    services: dict[str, ServiceArgs]
    """Programs that the training needs, such as a store: {"store": {"command": ["redis-server", "--port={port}"]}} is the task
    store-0, which others reach by {store_hosts} or $TFDEPLOY_STORE_HOSTS."""
    data_service: DataServiceArgs
    """tf.data service: tasks that compute the dataset, without a program of yours: data-dispatcher-0, with its journal below
    `train_dir`, and workers."""
    metrics: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Metrics by name: a regular expression that is searched in the log of the tasks that decide success, then in the other logs."""
    until: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Comparisons that end the run as succeeded: a name of `metrics`, and `>=`, `<=`, `>` or `<` with a number, such as
    {"accuracy": ">= 0.95"}."""
    env: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Environment variables of all tasks; values may contain the placeholders."""
    secrets: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Secret values by name."""
    data_dir: pulumi.Input[str]
    """The folder of the training data, relative to the Pulumi program, or a URL: $TFDEPLOY_DATA_DIR."""
    train_dir: pulumi.Input[str]
    """The folder for checkpoints, relative to the Pulumi program, or a URL: $TFDEPLOY_TRAIN_DIR in the tasks."""
    artifacts: pulumi.Input[Sequence[pulumi.Input[str]]]
    """What is stored of `train_dir` with the record when the run ends or is stopped: glob patterns of files in the folder of the
    run."""
    checkpoint_upload_interval: pulumi.Input[str]
    """While the run trains, its newest complete checkpoint is stored with the record when it has changed, at most once in this
    time."""
    context: pulumi.Input[Mapping[str, Any]]
    """Data for the program: $TFDEPLOY_CONTEXT, as JSON."""
    success: pulumi.Input[SuccessRule]
    """The tasks that must succeed for the run to succeed."""
    worker_timeout: pulumi.Input[str]
    """After the chief or worker 0 has decided that the run succeeded: the time that the other workers have to end by themselves."""
    evaluator_timeout: pulumi.Input[str]
    """After the success of the run: the time that the evaluator has to evaluate the last checkpoint and to end by itself; "0" stops
    it at once."""
    restart: RestartArgs
    """When failed tasks are restarted."""
    stop_grace_period: pulumi.Input[str]
    """The time between SIGTERM and SIGKILL when a task is stopped."""
    wait: pulumi.Input[str]
    """The longest time that `pulumi up` waits for the end of the run; "0" to not wait."""
    start_timeout: pulumi.Input[str]
    """The longest time that tasks wait for one another before the first start; then the run fails."""
    retention: pulumi.Input[str]
    """How long this computer keeps what `destroy` has stored of clusters of this stack (records; on "local" also checkpoints), such
    as "30d"."""
    run_id: pulumi.Input[str]
    """Any text; a new one is a new run of the same program."""
    resume_from: pulumi.Input[str]
    """The id of an earlier run; this run continues in its folder of `train_dir`."""
    adopt: pulumi.Input[str]
    """The id of a cluster that exists and that the state of this stack does not have, for example because the state was lost."""
    log_lines: pulumi.Input[int]
    """The number of last lines of each task in the output `logs`; at most 20000 for all tasks together."""
    backend: pulumi.Input[Backend]
    """Where tasks run."""
    container: ContainerArgs
    """Settings of containers, for the backends "docker", "ec2" and "kubernetes"."""
    docker: DockerArgs
    """Settings of the backend "docker"."""
    ec2: Ec2Args
    """Settings of the backend "ec2"."""
    kubernetes: KubernetesArgs
    """Settings of the backend "kubernetes"."""
