"""The training of a round: a plain program with a step counter, checkpoints and numbered lines, and its ledger.

The ledger is a file that no fault reaches. The programs of all tasks append to it, and so does the test; its order is the order in
which things happened, whatever the clocks said. Beside it each start has a file with the bytes that it printed, and each task one
with its step counter, which the oracle samples, and one that its program locks until it ends.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

STEPS = 100
CHECKPOINT_EVERY = 5
LINES = 3
LEDGER = "ledger.jsonl"
PULSE = ".pulse"
"""How the name of the file with a task's step counter ends."""
SCRIPT = "train.py"

PROGRAM = f"""\
import fcntl, json, os, pathlib, sys, time, uuid

flags = dict(argument.lstrip("-").split("=", 1) for argument in sys.argv[1:])
missing = {{"job_name", "task_index", "ps_hosts", "worker_hosts"}} - set(flags)
if missing:
    sys.exit(f"without {{sorted(missing)}}")
hostname = os.environ["TFDEPLOY_HOSTNAME"]
folder, train = pathlib.Path(os.environ["COUNTER"]), pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"])
start = uuid.uuid4().hex
ledger = os.open(folder / "{LEDGER}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
copy = os.open(folder / f"{{start}}.out", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
checkpoint = train / f"{{hostname}}.step"
pulse = os.open(folder / f"{{hostname}}{PULSE}", os.O_WRONLY | os.O_CREAT, 0o666)
only = os.open(folder / f"{{hostname}}.lock", os.O_WRONLY | os.O_CREAT, 0o666)


def note(kind, **facts):
    os.write(ledger, (json.dumps({{"kind": kind, "task": hostname, "start": start, **facts}}) + "\\n").encode())


def save(name):  # as TensorFlow does: this is what an upload stores
    (train / hostname).mkdir(exist_ok=True)
    for suffix in ("data-00000-of-00001", "index"):
        (train / hostname / f"{{name}}.{{suffix}}").write_text(name)
    draft = train / hostname / "checkpoint.draft"
    draft.write_text(f'model_checkpoint_path: "{{name}}"\\n')
    draft.rename(train / hostname / "checkpoint")


def say(text):
    data = f"{{text}}\\n".encode()
    os.write(copy, data)
    while data:
        data = data[os.write(1, data):]


def beat():
    os.pwrite(pulse, f"{{start}} {{step:6}}".encode(), 0)


step = int(checkpoint.read_text()) if checkpoint.exists() else 0
note("start", train_dir=str(train), first=step)
try:
    fcntl.flock(only, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    note("twin")
beat()
say(f"start {{start}} from {{step}}")
code = 1
try:
    while flags["job_name"] == "ps" or step < {STEPS}:
        step += 1
        beat()
        for line in range({LINES}):
            say(f"step {{step}} line {{line}} " + "x" * ((step * 7 + line * 31) % 97))
        if step % {CHECKPOINT_EVERY} == 0:
            draft = checkpoint.with_suffix(".draft")
            draft.write_text(str(step))
            draft.rename(checkpoint)
            save(f"model.ckpt-{{step}}")
            note("checkpoint", step=step)
        time.sleep(float(os.environ["PACE"]))
    code = 0
except OSError as error:
    sys.exit(f"step {{step}}: {{error}}")
finally:
    note("end", code=code, step=step)
"""


@dataclass(frozen=True)
class Note:
    """One line of the ledger."""

    kind: str
    """Of a program: `start`, `twin` (another program of its task runs), `checkpoint`, `end`. Of the test: `cut` (what the task had not
    sent may be lost), `storage_lost` (its checkpoints are lost too)."""
    task: str = ""
    """A hostname; `*` for all."""
    start: str = ""
    train_dir: str = ""
    first: int = 0
    step: int = 0
    code: int = 0


@dataclass(frozen=True)
class Ledger:
    """What the programs themselves have written down."""

    notes: Sequence[Note] = ()
    printed: dict[str, bytes] = field(default_factory=dict)
    """Start to the bytes that it has printed; of a program that was killed the last line may not have been sent."""

    @property
    def done(self) -> float:
        """The part of the training that worker-0 has done in its newest folder, from 0 to 1."""
        folder, step = "", 0
        for note in self.notes:
            if note.kind == "storage_lost":
                folder, step = "", 0
            elif note.task == "worker-0" and note.kind == "start":
                folder, step = note.train_dir, note.first
            elif note.task == "worker-0" and note.kind == "checkpoint":
                step = note.step
        return step / STEPS if folder else 0.0


def read(folder: Path) -> Ledger:
    """The ledger in a folder."""
    path = folder / LEDGER
    lines = path.read_text().splitlines() if path.exists() else []
    notes = [Note(**json.loads(line)) for line in lines]
    return Ledger(notes, {path.stem: path.read_bytes() for path in folder.glob("*.out")})


def write(folder: Path, kind: str, task: str) -> None:
    """Append a note of the test's."""
    with (folder / LEDGER).open("a") as ledger:
        ledger.write(json.dumps({"kind": kind, "task": task}) + "\n")
