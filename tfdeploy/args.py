"""The arguments of a `TensorFlowCluster`. Their defaults are those of the dataclasses in `spec/`.

Outputs of other resources are valid in all of them; groups, such as `ec2`, are mappings with members that may be Outputs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import pulumi

from .choices import Backend, Connectivity, FlagRule, MachineLayout, Network, SuccessRule


class RestartArgs(TypedDict, total=False):
    """When a failed task is restarted."""

    maximum: pulumi.Input[int]
    """The highest number of restarts of a task in one run; 0 disables restarts."""

    backoff: pulumi.Input[str]
    """The delay before the first restart. It doubles with each further restart, up to 300 s."""

    on: pulumi.Input[Sequence[pulumi.Input[str]]]
    """The failures after which a task is restarted: "any", "signal", "oom", an exit code ("3") or a range of exit codes ("64-78")."""


class ElasticArgs(TypedDict, total=False):
    """Workers that are added, removed or lost while the others train."""

    max: pulumi.Input[int]
    """The highest number of workers. Every task knows the addresses of so many from its start. A change restarts all tasks."""


class JobContainerArgs(TypedDict, total=False):
    """The containers of one job."""

    image: pulumi.Input[str]
    """This job's image; by default the cluster's. A new image restarts the job's tasks in the same run."""

    user: pulumi.Input[str]
    """This job's user; by default the cluster's."""

    volumes: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Volumes of this job, in addition to the cluster's."""

    shm_size: pulumi.Input[str]
    """This job's size of /dev/shm; by default the cluster's."""

    placement: pulumi.Input[Sequence[pulumi.Input[str]]]
    """This job's placement constraints; they replace the cluster's."""


class JobEc2Args(TypedDict, total=False):
    """The EC2 instances of one job."""

    instance_type: pulumi.Input[str]
    """This job's instance type; by default the cluster's."""

    ami: pulumi.Input[str]
    """This job's machine image; by default the cluster's."""

    spot: pulumi.Input[bool]
    """Whether this job uses spot instances; by default as the cluster does, except for ps, which does not."""

    machine_layout: pulumi.Input[MachineLayout]
    """How this job's tasks share machines; by default as the cluster's."""

    machine_count: pulumi.Input[int]
    """The number of this job's machines; by default the cluster's."""

    root_volume_size: pulumi.Input[str]
    """The size of the root volume; by default the cluster's."""

    root_volume_type: pulumi.Input[str]
    """The type of the root volume; by default the cluster's."""

    ebs_volumes: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Volumes of this job's machines, in addition to the cluster's."""


class JobKubernetesArgs(TypedDict, total=False):
    """The pods of one job, on the backend "kubernetes"."""

    node_selector: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels of the nodes of this job, in addition to the cluster's; the same label overrides."""

    tolerations: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Taints that this job tolerates, in addition to the cluster's."""

    priority_class: pulumi.Input[str]
    """This job's priority class; by default the cluster's."""

    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels of this job's pods, in addition to the cluster's; the same label overrides."""

    annotations: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Annotations of this job's pods, in addition to the cluster's; the same annotation overrides."""


class JobArgs(TypedDict, total=False):
    """Settings of one job."""

    cpus: pulumi.Input[float]
    """CPUs that are reserved for each task; 0 reserves none. A machine must have the CPUs of all its tasks."""

    memory: pulumi.Input[str]
    """The memory limit of each task, such as "2GiB"; a task above it is killed and reported as `out of memory`. 0 means no limit."""

    gpus: pulumi.Input[int]
    """GPUs of each task, which it sees by `CUDA_VISIBLE_DEVICES`. A gpu_worker has 1 by default."""

    port: pulumi.Input[int]
    """The port of task 0; task 1 has the next one, and so on. By default each task uses a free port."""

    env: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Environment variables of this job, in addition to the cluster's; the same name overrides."""

    restart: RestartArgs
    """This job's restart policy; each setting overrides the cluster's."""

    required: pulumi.Input[bool]
    """Whether the run fails if a task of this job fails for good. Only an evaluator and services can be not required."""

    container: JobContainerArgs
    """This job's containers."""

    ec2: JobEc2Args
    """This job's EC2 instances."""

    kubernetes: JobKubernetesArgs
    """This job's pods on Kubernetes."""


class ServiceArgs(JobArgs, total=False):
    """A program that the training needs. Its further settings are those of a job."""

    command: pulumi.Input[Sequence[pulumi.Input[str]]]
    """The program and its arguments, with placeholders as in the cluster's command. It has to listen at {port}. Required."""

    count: pulumi.Input[int]
    """The number of its tasks."""


class DataServiceArgs(TypedDict, total=False):
    """The tasks of tf.data service."""

    workers: pulumi.Input[int]
    """The number of its workers: the tasks data-worker-0, … Another number restarts no other task. Required."""


class ContainerArgs(TypedDict, total=False):
    """Containers, on the backends "docker", "ec2" and "kubernetes"."""

    image: pulumi.Input[str]
    """The image of all tasks; a new one is a new run. The image needs Python 3.8 or newer as `python3`. By default
    TensorFlow's own image, with CUDA for jobs with GPUs."""

    build: pulumi.Input[str]
    """A folder with a Dockerfile, relative to the Pulumi program. The image is built from it, tagged by the hash of the folder's
    content, and pushed to `registry` if that is set."""

    registry: pulumi.Input[str]
    """The registry and path for built images, such as "registry.example.com/team". The credentials are those of `docker login`.
    Required for built images if there is more than one machine."""

    user: pulumi.Input[str]
    """The user of the containers, as in `docker run --user`; by default the image's."""

    volumes: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Mounts of every task: "SOURCE:TARGET[:ro]", where SOURCE is a folder of the machine or the name of a volume, or
    "type=volume,source=NAME,target=/FOLDER,volume-opt=…"."""

    shm_size: pulumi.Input[str]
    """The size of /dev/shm, such as "1GiB"; 0 is Docker's default of 64 MiB."""

    placement: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Constraints on the machine of a task: FIELD:OPERATOR[:PARAMETER] with Marathon's operators UNIQUE, CLUSTER, GROUP_BY,
    LIKE, UNLIKE, MAX_PER and IS. FIELD is hostname, address or a label of the node. By default tasks are spread evenly."""

    network: pulumi.Input[Network]
    """"overlay": the cluster has its own network with DNS names. "host": containers use the network of their machine,
    which costs no performance and isolates nothing."""

    subnet: pulumi.Input[str]
    """The addresses of the overlay network, such as "10.20.0.0/24"; by default Docker chooses them."""

    retain_volumes: pulumi.Input[bool]
    """Whether `destroy` retains what may be the only copy of a checkpoint: the volume of the default `train_dir`, and on "ec2"
    the file system of `efs="new"`. Volumes that you name are always retained."""


class DockerArgs(TypedDict, total=False):
    """The Docker engine, on the backend "docker"."""

    host: pulumi.Input[str]
    """The engine that manages the Swarm: "unix://…", "ssh://USER@HOST" or "tcp://HOST:PORT". By default $DOCKER_HOST, or this one."""

    encrypted: pulumi.Input[bool]
    """Whether the traffic of the overlay network is encrypted between machines. It costs performance; a change restarts all tasks."""

    cleanup_image: pulumi.Input[str]
    """The image that removes volumes of the cluster from machines other than the manager, which needs their Docker socket:
    for `retain_volumes=False` and for `tfdeploy restart --without-data`. It needs Python 3.8 or newer as `python3`."""


class Ec2Args(TypedDict, total=False):
    """EC2 instances and what they need, on the backend "ec2"."""

    region: pulumi.Input[str]
    """The region, such as "us-west-2"; by default that of the AWS provider: `aws:region`, else the AWS CLI's default."""

    instance_type: pulumi.Input[str]
    """The instance type, such as "m7i.large", or "g6.xlarge" for jobs with GPUs. Required, here or in each job."""

    machine_layout: pulumi.Input[MachineLayout]
    """"per-task": each task has a machine. "packed": as few machines as hold what the tasks reserve."""

    machine_count: pulumi.Input[int]
    """The number of machines, which the tasks share. By default it follows from `machine_layout`."""

    max_machines: pulumi.Input[int]
    """The highest number of machines; a plan with more is refused."""

    max_lifetime: pulumi.Input[str]
    """The time after which a machine terminates itself in any case; "never" disables it."""

    idle_timeout: pulumi.Input[str]
    """The time without tasks after which a machine terminates itself; "never" disables it."""

    budget: pulumi.Input[float]
    """The highest cost of the cluster's machines, in USD. A plan is refused if its machines may cost more until the end of
    `max_lifetime`, or if a price is unknown. The run is stopped in time for all machines together, those before them included, to
    cost no more when they have terminated themselves (`idle_timeout`), without the start of the first ones. By default there is no
    limit."""

    ami: pulumi.Input[str]
    """The machine image: "ami-…"; "ssm:/PARAMETER", a public parameter that contains one; "deep-learning" for Amazon's Deep
    Learning AMI. By default the ECS-optimized Amazon Linux 2023 for the processor of the instance type, with NVIDIA's driver
    if the type has GPUs. It is looked up once; existing machines are not replaced when AWS publishes a newer one."""

    spot: pulumi.Input[bool]
    """Whether chief, workers and evaluator use spot instances, which are cheaper and can be interrupted. A ps uses them only if
    its job's group `ec2` sets it; the Swarm manager never does."""

    root_volume_size: pulumi.Input[str]
    """The size of the root volume. It is always encrypted."""

    root_volume_type: pulumi.Input[str]
    """The type of the root volume."""

    ebs_volumes: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Further volumes of each machine: "SIZE:TARGET", such as "200GiB:/scratch", for a new one that is deleted with its machine;
    "vol-…:TARGET" for an existing one, which is retained and can have only one machine. TARGET is the folder in the containers."""

    vpc_id: pulumi.Input[str]
    """The VPC; by default the region's default VPC."""

    subnet_id: pulumi.Input[str]
    """The subnet; by default one of the VPC in a zone that offers all instance types."""

    ssh_public_key: pulumi.Input[str]
    """The file with your SSH public key, which the machines accept beside those of colleagues; by default
    ~/.ssh/id_ed25519.pub or id_rsa.pub. The private key never leaves your computer."""

    ssh_user: pulumi.Input[str]
    """The user of the machine image."""

    ssh_cidrs: pulumi.Input[Sequence[pulumi.Input[str]]]
    """The addresses that may connect by SSH, as CIDRs, such as "203.0.113.7/32"; "anywhere" for all. Required, except with
    the connectivity "ssm", which does not use it."""

    connectivity: pulumi.Input[Connectivity]
    """How tfdeploy connects to the machines. "public": SSH to a public address. "private": SSH to an address in the VPC,
    through your VPN or jump host. "ssm": SSH through AWS Systems Manager, without public addresses or open ports. A change
    replaces the machines."""

    placement_group: pulumi.Input[str]
    """The name of an existing placement group for the machines."""

    instance_profile: pulumi.Input[str]
    """An existing instance profile, for example to pull images from ECR. With "ssm" its role needs AmazonSSMManagedInstanceCore."""

    efs: pulumi.Input[str]
    """A file system that all machines share, for `train_dir`: "new" for one of the cluster, or the id of an existing one, "fs-…"."""

    retain_record: pulumi.Input[bool]
    """Whether `destroy` retains the record of runs in S3."""

    tags: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Additional tags of all AWS resources."""


class KubernetesArgs(TypedDict, total=False):
    """The Kubernetes cluster and the pods, on the backend "kubernetes"."""

    context: pulumi.Input[str]
    """The context of the kubeconfig; by default its current one."""

    kubeconfig: pulumi.Input[str]
    """The kubeconfig: the path of a file, or its content as YAML or JSON, such as the Output of a Kubernetes cluster that the same
    program creates. A content must not have credentials, but may name a program that gets them, as that of EKS does. By default
    $KUBECONFIG, else ~/.kube/config."""

    namespace: pulumi.Input[str]
    """An existing namespace; by default that of the context, else "default"."""

    node_selector: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels that the nodes of all tasks must have."""

    tolerations: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Taints of nodes that all tasks tolerate, as `kubectl taint` writes them: "KEY=VALUE:EFFECT", "KEY:EFFECT", "KEY" for every
    value and effect; "*" for all taints."""

    priority_class: pulumi.Input[str]
    """The priority class of the pods."""

    service_account: pulumi.Input[str]
    """The service account of the pods, for example for access to a bucket; by default "default". Pods do not get its token."""

    image_pull_secrets: pulumi.Input[Sequence[pulumi.Input[str]]]
    """The Secrets of the namespace with the credentials of image registries."""

    queue: pulumi.Input[str]
    """The LocalQueue of Kueue that admits the tasks."""

    storage_class: pulumi.Input[str]
    """The storage class of the volumes that are created; by default the Kubernetes cluster's."""

    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Additional labels of all pods."""

    annotations: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Additional annotations of all pods."""


class TensorFlowClusterArgs(TypedDict, total=False):
    """The training program, the number of tasks, and where they run."""

    command: pulumi.Input[Sequence[pulumi.Input[str]]]
    """The program and its arguments. Placeholders: {job_name} {task_index} {ps_hosts} {worker_hosts} {chief_hosts} {hostname}
    {address} {port} {data_dir} {train_dir} {context}, {NAME_hosts} of each of `services`, and {data_service}. Required, except
    with `standalone_servers`, and on "docker" and "ec2" if the image has an entry point."""

    flags: pulumi.Input[FlagRule]
    """Whether the flags --job_name, --task_index, --ps_hosts and --worker_hosts are appended to the command. "auto": if there is a ps
    and no chief, and the command contains none of {job_name} {task_index} {ps_hosts} {worker_hosts}. A change is a new run."""

    code: pulumi.Input[str]
    """A folder, relative to the Pulumi program, that is copied to every task and is its working directory. Files that .gitignore,
    .git/info/exclude and .tfdeployignore name are not copied, nor is what editors, desktops, coverage and experiment trackers leave
    there, nor logs (*.log), nor keys and credentials such as .env, *.pem, secrets.yaml and .aws, which the preview lists."""

    standalone_servers: pulumi.Input[bool]
    """Whether tasks only run a TensorFlow gRPC server, for a client program that you run. With chief=True, `command` is
    that client: it runs as the chief, and the run ends with it."""

    requirements: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Python packages in addition to TensorFlow, as in a requirements file: "pandas==2.2.3", or "NAME @ URL" of a wheel, an archive or
    a Git repository, which pip downloads with the permissions of the user that runs pip. Options such as --index-url are refused."""

    ps: pulumi.Input[int]
    """The number of parameter servers."""

    workers: pulumi.Input[int]
    """The number of workers."""

    elastic: ElasticArgs
    """That `workers` may change, up to a maximum, during the training: no other task restarts, and the loss of a worker other than
    worker 0 never fails the run. For asynchronous training with parameter servers; the sessions of the program need device filters."""

    gpu_workers: pulumi.Input[int]
    """The number of workers with GPUs: the tasks gpu-worker-0, … TensorFlow sees them as workers, after those of `workers`."""

    chief: pulumi.Input[bool]
    """Whether there is a chief."""

    tf_config_master: pulumi.Input[bool]
    """Whether `TF_CONFIG` calls the chief `master`, as programs for TensorFlow 1 expect."""

    evaluator: pulumi.Input[bool]
    """Whether there is an evaluator, which is not part of the cluster spec."""

    tensorboard: pulumi.Input[bool]
    """Whether TensorBoard runs on `train_dir` as the task tensorboard-0, on port 6006 (on "local" on another one if that is in
    use; see the output `endpoints`). It runs until `destroy` and does not affect the result of the run. The environment or
    image of the tasks must have the package tensorboard."""

    jobs: dict[str, JobArgs]
    """Settings of single jobs: chief, ps, worker, gpu_worker, evaluator, tensorboard, data_dispatcher, data_worker."""

    services: dict[str, ServiceArgs]
    """Programs that the training needs, such as a store: {"store": {"command": ["redis-server", "--port={port}"]}} is the task
    store-0, which others reach by {store_hosts} or $TFDEPLOY_STORE_HOSTS. Services start first and end with the run, of which they
    do not decide the result; by default they are restarted after any failure. A changed command is a new run."""

    data_service: DataServiceArgs
    """tf.data service: tasks that compute the dataset, without a program of yours: data-dispatcher-0, with its journal below
    `train_dir`, and workers. Your program gets its address as {data_service} and $TFDEPLOY_DATA_SERVICE."""

    metrics: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Metrics by name: a regular expression that is searched in the log of the tasks that decide success, then in the other logs. The
    value is the last match (of group 1 if there is one), as a number if possible, and None without a match."""

    until: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Comparisons that end the run as succeeded: a name of `metrics`, and `>=`, `<=`, `>` or `<` with a number, such as
    {"accuracy": ">= 0.95"}. All of them must hold for the last values of their metrics. The tasks are then stopped as by
    `tfdeploy stop`, so that the program has `stop_grace_period` to save. A change is not a new run."""

    env: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Environment variables of all tasks; values may contain the placeholders. A change is a new run. Secret Outputs and secret
    configuration are stored as `secrets` are."""

    secrets: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Secret values by name. Each is a file in the folder $TFDEPLOY_SECRETS, and an environment variable if its name is in capitals.
    A change is not a new run."""

    data_dir: pulumi.Input[str]
    """The folder of the training data, relative to the Pulumi program, or a URL: $TFDEPLOY_DATA_DIR. An Output must be a URL."""

    train_dir: pulumi.Input[str]
    """The folder for checkpoints, relative to the Pulumi program, or a URL: $TFDEPLOY_TRAIN_DIR in the tasks. Each run has a
    subfolder. By default a folder of the cluster."""

    artifacts: pulumi.Input[Sequence[pulumi.Input[str]]]
    """What is stored of `train_dir` with the record when the run ends or is stopped: glob patterns of files in the folder of the run.
    `saved_model.pb` means the model in its folder, `checkpoint` for the newest checkpoint in its folder, `NAME.index` for the newest
    one where no file `checkpoint` names one, and `**` for any number of folders. By default models, the newest checkpoints, and weights
    in HDF5. An empty list stores nothing. See the output `artifacts`. A change is not a new run."""

    checkpoint_upload_interval: pulumi.Input[str]
    """While the run trains, its newest complete checkpoint is stored with the record when it has changed, at most once in this
    time. A task with an empty `train_dir` continues from it. It is the one that TensorFlow's file `checkpoint` names where the chief
    runs, else worker 0. "0": only when the run ends. The default is "5m" where machines can be lost (on "ec2" and "kubernetes", and on
    "docker" with several machines), else "0". A change is not a new run."""

    context: pulumi.Input[Mapping[str, Any]]
    """Data for the program: $TFDEPLOY_CONTEXT, as JSON."""

    success: pulumi.Input[SuccessRule]
    """The tasks that must succeed for the run to succeed. By default the chief; without a chief, worker 0."""

    worker_timeout: pulumi.Input[str]
    """After the chief or worker 0 has decided that the run succeeded: the time that the other workers have to end by themselves. Their
    failures do not count then. The parameter servers serve them for so long. What still runs after it is stopped. The
    default is "0" where a chief decides and there are parameter servers: workers only serve then."""

    evaluator_timeout: pulumi.Input[str]
    """After the success of the run: the time that the evaluator has to evaluate the last checkpoint and to end by itself; "0" stops it
    at once. An evaluator that fails meanwhile does not change the result."""

    restart: RestartArgs
    """When failed tasks are restarted."""

    stop_grace_period: pulumi.Input[str]
    """The time between SIGTERM and SIGKILL when a task is stopped."""

    wait: pulumi.Input[str]
    """The longest time that `pulumi up` waits for the end of the run; "0" to not wait. TFDEPLOY_WAIT overrides it for one call."""

    start_timeout: pulumi.Input[str]
    """The longest time that tasks wait for one another before the first start; then the run fails. By default there is no limit."""

    retention: pulumi.Input[str]
    """How long this computer keeps what `destroy` has stored of clusters of this stack (records; on "local" also checkpoints), such as
    "30d". An update removes what is older, and its preview lists it; the newest record, the newest checkpoints and what is of a
    cluster that still exists stay. By default nothing is removed."""

    run_id: pulumi.Input[str]
    """Any text; a new one is a new run of the same program."""

    resume_from: pulumi.Input[str]
    """The id of an earlier run; this run continues in its folder of `train_dir`."""

    adopt: pulumi.Input[str]
    """The id of a cluster that exists and that the state of this stack does not have, for example because the state was lost. This
    stack takes it over. Without this argument it creates a new cluster."""

    log_lines: pulumi.Input[int]
    """The number of last lines of each task in the output `logs`; at most 20000 for all tasks together."""

    backend: pulumi.Input[Backend]
    """Where tasks run. "local": processes on this machine. "docker": containers on a Docker Swarm. "ec2": containers on
    EC2 instances that are created for the cluster. "kubernetes": pods of a Kubernetes cluster that exists."""

    container: ContainerArgs
    """Settings of containers, for the backends "docker", "ec2" and "kubernetes"."""

    docker: DockerArgs
    """Settings of the backend "docker"."""

    ec2: Ec2Args
    """Settings of the backend "ec2"."""

    kubernetes: KubernetesArgs
    """Settings of the backend "kubernetes"."""
