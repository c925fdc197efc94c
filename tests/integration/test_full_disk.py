"""The disk with the user's state folder is full: `pulumi up` says so in a sentence, and goes on where it was once there is space."""

import os
import re

import pytest

from tests.integration.conftest import Project

PULUMI = "pulumi up --yes --skip-preview --non-interactive --stack test"

SCRIPT = f"""
mount -t tmpfs -o size=8m tmpfs "$XDG_STATE_HOME"
cd "$XDG_STATE_HOME"
fill() {{
    rm -f filler
    fallocate -l $(($(df --output=avail -B1 . | tail -1) - $1)) filler
}}
at() {{
    echo "=== $1"
    (cd "$PROGRAM" && shift && "$@" 2>&1)
    echo "=== exit code $?"
}}
for spare in 0 12288 65536; do
    fill $spare
    at "full but for $spare bytes" {PULUMI}
done
rm filler
at "free" {PULUMI}
fill 0
at "full again" {PULUMI}
at "shown" tfdeploy show
rm filler
at "destroyed" pulumi destroy --yes --skip-preview --non-interactive --stack test
"""
"""In a mount namespace of its own, whose disk ends with it. At its end the cluster is destroyed, whatever happened before."""


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_state_folder_is_a_sentence_and_nothing_is_lost(project: Project) -> None:
    project.write('command=["python", "train.py"], code="code", workers=1, backend="local"', "print('trained')")
    (project.folder / "state").mkdir()
    command = ("unshare", "--mount", "--propagation", "private", "--", "sh", "-c", SCRIPT)
    output = project.run(*command, env={"PROGRAM": str(project.program)}).output
    calls = re.findall(r"=== ([^\n]*)\n(.*?)=== exit code (\d+)\n", output, re.DOTALL)
    failed = [name for name, _, code in calls if code != "0"]
    assert failed == [*(f"full but for {spare} bytes" for spare in (0, 12288, 65536)), "full again"], output
    assert "Traceback" not in output
    texts = {name: text for name, text, _ in calls}
    sentence = r"error: .*/state/tfdeploy/\S+: No space left on device\. Free space on that disk"
    assert all(re.search(sentence, texts[name]) for name in failed), output
    assert "Run succeeded: worker-0 succeeded." in texts["free"]
    assert "Run succeeded: worker-0 succeeded." in texts["shown"]
    assert "the record and the checkpoints are stored in" in texts["destroyed"]
