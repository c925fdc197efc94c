"""The arguments of a `TensorFlowCluster`."""

from typing import Any, TypedDict

import pulumi


class RestartArgs(TypedDict, total=False):
    """When a task whose program ended badly is started again."""

    maximum: int
    """How often at most in one run; 3 by default, 0 for never."""

    backoff: str
    """The pause before the first restart, such as "1s" (the default); doubled with each one after it, up to 300 s."""

    on: list[str]
    """After which ends: "any", "signal" (the default), "oom", an exit code ("3") or a range of them ("64-78")."""


class JobArgs(TypedDict, total=False):
    """What one job has of its own."""

    cpus: float
    """Processors reserved for each task; together they must be there. 0, the default, reserves none."""

    memory: str
    """The most memory each task may hold, such as "2GiB"; it is killed, `out of memory`, when it holds more. No limit
    by default."""

    gpus: int
    """GPUs of each task's own, given by `CUDA_VISIBLE_DEVICES`; 0, the default but for gpu_worker (1), shows it none."""

    port: int
    """The port of task 0; task 1 has the next one, and so on. By default each task takes a free one."""

    env: dict[str, str]
    """Environment of this job's tasks, over the cluster's `env`."""

    restart: RestartArgs
    """This job's restarts, over the cluster's `restart`."""

    image: str
    """This job's image, over the cluster's. A changed one restarts the job's tasks in the same run."""

    user: str
    """As the cluster's `user`."""

    volumes: list[str]
    """Added to the cluster's `volumes`."""

    shm_size: str
    """As the cluster's `shm_size`."""

    placement: list[str]
    """This job's constraints, in the place of the cluster's `placement`."""

    instance_type: str
    """This job's type of machine, over the cluster's."""

    ami: str
    """As the cluster's `ami`."""

    spot: bool
    """Whether this job's machines are spot instances, over the cluster's `spot`."""

    machines: str
    """As the cluster's `machines`, for this job alone."""

    root_volume_size: str
    """As the cluster's `root_volume_size`."""

    root_volume_type: str
    """As the cluster's `root_volume_type`."""

    ebs_volumes: list[str]
    """Volumes of this job's machines, beside the cluster's `ebs_volumes`."""


class TensorFlowClusterArgs(TypedDict, total=False):
    """What to run, and on how many tasks."""

    command: list[str]
    """The program and its arguments. The four flags --job_name --task_index --ps_hosts --worker_hosts follow it, unless
    it uses one of the placeholders {job_name} {task_index} {ps_hosts} {worker_hosts}. Further placeholders:
    {chief_hosts} {hostname} {address} {data_dir} {train_dir} {context}. Required, unless `serve`."""

    code: str
    """A folder that is shipped to every task and is its working directory; relative to the Pulumi program. None by default."""

    serve: bool
    """True: the tasks only serve TensorFlow's gRPC, for a client of yours that drives them. With chief=1 and `command`, that client
    is the chief, and the job ends with it. False by default."""

    requirements: list[str]
    """Python packages that the program needs besides TensorFlow, as pip takes them. None by default."""

    ps: int
    """How many parameter servers; 0 by default."""

    workers: int
    """How many workers; 0 by default."""

    gpu_workers: int
    """How many workers with GPUs: the job gpu_worker, whose tasks gpu-worker-0, … are TensorFlow's workers after those of
    `workers`; 0 by default."""

    chief: int
    """1 for a chief; 0 by default."""

    master: bool
    """True: `TF_CONFIG` calls the chief `master`, as programs before TensorFlow 2 expect; all else calls it chief. False by
    default."""

    evaluator: int
    """1 for an evaluator, which stands outside the cluster spec; 0 by default."""

    tensorboard: bool
    """True: TensorBoard on `train_dir`, where each run has a folder, as the task tensorboard-0 on port 6006 (on "local" on another
    one where that is taken); the output `endpoints` says where. It goes on after the job's end, until `destroy`, and the job
    does not fail with it. It needs the package tensorboard in the tasks' environment or image. False by default."""

    jobs: dict[str, JobArgs]
    """What one job (chief, ps, worker, gpu_worker, evaluator, tensorboard) has of its own."""

    metrics: dict[str, str]
    """Name to regular expression. The metric is what the pattern (its group 1, where it has one) found last in this
    run's lines of the tasks that decide success, else of the others; a number where it reads as one, None while
    absent."""

    env: dict[str, str]
    """Environment variables of every task; values may use the placeholders. A changed one is a new run."""

    secrets: dict[str, pulumi.Input[str]]
    """Values that are never shown: a file of that name in the folder $TFDEPLOY_SECRETS, and an environment variable too
    when the name is in capitals. A changed one is no new run."""

    data_dir: str
    """Where the training data is: a folder, relative to the Pulumi program, or a URL. $TFDEPLOY_DATA_DIR in the
    task."""

    train_dir: str
    """Where checkpoints go: a folder, relative to the Pulumi program, or a URL; each run has a folder of its own in it.
    $TFDEPLOY_TRAIN_DIR in the task. By default a folder of the cluster's."""

    context: dict[str, Any]
    """Data for the program, as JSON text in $TFDEPLOY_CONTEXT. Empty by default."""

    success: str
    """Whose success is the job's: "chief", "worker 0" or "all workers". By default the chief if there is one, else all
    workers."""

    restart: RestartArgs
    """When a failed task is started again."""

    grace: str
    """How long a task has between SIGTERM and SIGKILL, and an evaluator to finish by itself; "10s" by default."""

    wait: str
    """How long `pulumi up` waits for the job's end; "10m" by default, "0" for not at all. TFDEPLOY_WAIT overrides it
    for one call."""

    start_timeout: str
    """How long the tasks wait for one another at the start before the job fails; "5m" by default."""

    run_id: str
    """Any text: another one is a new run of the same program."""

    resume_from: str
    """The id of an earlier run whose folder in `train_dir` this one goes on with."""

    log_lines: int
    """How many last lines of each task the output `logs` has; 20 by default."""

    backend: str
    """Where the tasks run: "local" (the default), processes of this machine; "docker", containers on a Docker Swarm; "ec2",
    containers on machines of Amazon's that are made for the cluster. What follows is for containers; on "local" it has no
    effect."""

    docker_host: str
    """The engine that manages the Swarm: "unix://…", "ssh://USER@HOST" or "tcp://HOST:PORT". By default $DOCKER_HOST, else
    this machine's own engine."""

    image: str
    """The image of every task; a changed one is a new run. It needs Python 3.8 or newer as `python3`. By default
    TensorFlow's own, with CUDA for a job with gpus."""

    build: str
    """A folder with a Dockerfile, relative to the Pulumi program: the image is built from it, and pushed to `registry` when
    that is given. Its tag is named by the folder's content."""

    registry: str
    """Where images that are built are pushed to and pulled from, such as "registry.example.com/team". The credentials are
    those of `docker login`. Needed when the Swarm has several machines."""

    user: str
    """The user of the containers, as `docker run --user` takes it; by default the image's own."""

    volumes: list[str]
    """What every task mounts, in one of Docker's forms: "SOURCE:TARGET[:ro]", where SOURCE is a folder of the machine or the
    name of a volume, or "type=volume,source=NAME,target=/FOLDER,volume-opt=…"."""

    shm_size: str
    """The size of /dev/shm, such as "1GiB"; Docker's default (64 MiB) when not given."""

    placement: list[str]
    """Which machines a task may stand on: texts FIELD:OPERATOR[:PARAMETER] with Marathon's operators UNIQUE, CLUSTER,
    GROUP_BY, LIKE, UNLIKE, MAX_PER, IS; FIELD is hostname, address or a node's label. By default tasks are spread
    evenly."""

    network: str
    """"overlay" (the default): a network of the cluster's own, with names; "host": the machines' own, which costs nothing
    and shields nothing."""

    subnet: str
    """The addresses of the overlay network, such as "10.20.0.0/24"; chosen by Docker by default."""

    keep_volumes: bool
    """True: `destroy` leaves the volumes that were made for the cluster. False by default."""

    region: str
    """Where the machines are made, such as "us-west-2"; by default `aws:region`, else what the AWS command would take. This
    and what follows is for "ec2" alone."""

    instance_type: str
    """The type of machine, such as "m7i.large", or "g6.xlarge" for a job with gpus. Required, here or for each job."""

    machines: str
    """How many: "per task" (the default), one for each; "packed", as few as hold what the tasks of a job reserve; or a
    number for each job, such as "2"."""

    max_machines: int
    """More than so many are refused; 20 by default."""

    lifetime: str
    """How long a machine stands before it ends itself, whatever it does: "72h" by default; "never" for no end."""

    idle: str
    """How long a machine stands without a task before it ends itself: "15m" by default; "never" for no end."""

    budget: float
    """The most that the machines may cost until the end of their `lifetime`, in USD: a plan above it is refused, and one of
    which that is not known. By default nothing is refused."""

    ami: str
    """The machines' image: "ami-…"; "ssm:/PARAMETER", a public parameter that names one; "deep-learning" for Amazon's Deep
    Learning AMI. By default the ECS-optimized Amazon Linux 2023 for the type's processor, with NVIDIA's driver where the
    type has GPUs. It is looked up once: machines that stand keep theirs."""

    spot: bool
    """True for spot instances, which are cheaper and may be taken away: for chief, workers and evaluator. A ps is on one only by
    `jobs`; the machine that manages never is. False by default."""

    root_volume_size: str
    """The size of a machine's disk; "100GiB" by default."""

    root_volume_type: str
    """The disk's type; "gp3" by default. It is always encrypted."""

    ebs_volumes: list[str]
    """Further disks of each machine: "SIZE:TARGET", such as "200GiB:/scratch", for a new one that goes with its machine;
    "vol-…:TARGET" for one of yours, which stays: only one machine can have it. Tasks find it at TARGET."""

    vpc_id: str
    """The network that the machines are made in; by default the region's default VPC."""

    subnet_id: str
    """The subnet; by default one of the VPC's in a zone that has all types asked for."""

    ssh_key: str
    """The file of your public key, by which the machines let you in; by default ~/.ssh/id_ed25519.pub or
    id_rsa.pub. The private one stays where it is."""

    ssh_user: str
    """The user of the machines' image; "ec2-user" by default."""

    ssh_from: list[str]
    """The addresses that ssh is let in from, as CIDRs: your own, such as "203.0.113.7/32"; "anywhere" for all. Required,
    but refused with `access` "ssm"."""

    access: str
    """How the machines are reached: "public" (the default), by ssh at an address of their own; "private", by ssh at the
    address in their network, for which a VPN or a jump host of yours is needed; "ssm", by ssh through AWS Systems Manager,
    with neither a public address nor an open port. Another one makes the machines anew."""

    placement_group: str
    """The name of a placement group of yours that the machines are made in."""

    instance_profile: str
    """The name of an instance profile of yours, for machines that pull images from ECR; with `access` "ssm" its role needs
    AmazonSSMManagedInstanceCore."""

    efs: str
    """A file system that all machines share, for `train_dir`: "new" for one of the cluster's own, or "fs-…" for yours."""

    keep_record: bool
    """False: `destroy` removes the bucket with the record of what ran, too. True by default."""

    tags: dict[str, str]
    """Further tags of all that is made in AWS."""
