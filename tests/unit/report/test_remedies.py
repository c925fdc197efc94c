"""Remedies as `tfdeploy run` says them."""

import pytest

from tfdeploy.report.diagnosis import way_on
from tfdeploy.report.remedies import _PROGRAM_REMEDIES, in_words_of_run

WORDS = [
    (way_on("0123"), "Fix the cause, and run the command again by `tfdeploy run`."),
    (
        "`pulumi up` creates it again; `tfdeploy logs` shows the output of its tasks.",
        "`tfdeploy run` with the same command creates another one; `tfdeploy logs` shows the output of its tasks.",
    ),
    ('If it reads `TF_CONFIG`, set `flags="never"`.', "If it reads `TF_CONFIG`, add `--set flags=never`."),
    ("Run `chmod +x a.sh`, and `pulumi up`.", "Run `chmod +x a.sh`, and run the command again."),
    (
        'set `requirements=["tf_keras"]` and `env={"A": "1"}`.',
        "add `--set requirements='[\"tf_keras\"]'` and `-e A=1`.",
    ),
    ('`restart={"on": ["signal", "137"]}` restarts it', '`--set restart=\'{"on": ["signal", "137"]}\'` restarts it'),
    ("Raise it by `jobs={'ps': {'memory': …}}`.", 'Raise it by `--set jobs=\'{"ps": {"memory": …}}\'`.'),
    (
        "use placeholders such as --job_name={job_name} in the text",
        "use placeholders such as --job_name={job_name} in the text",
    ),
]


@pytest.mark.parametrize(("text", "said"), WORDS)
def test_a_remedy_is_in_the_words_of_run(text: str, said: str) -> None:
    assert in_words_of_run(text) == said


def test_no_remedy_of_a_program_names_what_run_does_not_have() -> None:
    for _, remedy in _PROGRAM_REMEDIES:
        assert "pulumi" not in in_words_of_run(remedy.replace("{{", "{").replace("}}", "}"))
