"""A login of AWS that has expired, as the component reports it: one sentence, before anything is registered."""

from pathlib import Path

import pytest

from tests.components.mocked import declare, refused, run
from tfdeploy.backends.ec2.aws import account

SSO = (
    "[profile ml]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = ml\nregion = us-west-2\n"
    "[sso-session corp]\nsso_region = us-west-2\nsso_start_url = https://corp.awsapps.com/start\n"
)
SENTENCE = (
    "AWS: Error loading SSO Token: Token for corp does not exist (us-west-2, profile ml). "
    "Run `aws sso login --profile ml`, `aws login --profile ml` or `aws configure --profile ml`, or set AWS_PROFILE, "
    "or AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for temporary credentials, AWS_SESSION_TOKEN."
)


@pytest.mark.parametrize("preview", [True, False])
def test_an_expired_login_is_refused_with_the_command_that_logs_in(
    preview: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text(SSO)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_PROFILE", "ml")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setattr("botocore.tokens.SSOTokenProvider._SSO_TOKEN_CACHE_DIR", str(tmp_path / "sso"))
    account.forget()
    said: list[str] = []

    def program() -> None:
        said.append(refused(lambda: declare(workers=1, backend="ec2", ec2={"instance_type": "m7i.large"})))

    assert run(program, preview).urns() == ""
    account.forget()
    assert said == [SENTENCE]
