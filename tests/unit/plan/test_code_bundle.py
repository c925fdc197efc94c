"""A folder of code becomes one archive, named by its content."""

import os
import socket
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from pathspec import GitIgnoreSpec

from tfdeploy.errors import BundleError, EmptyBundle
from tfdeploy.plan import code_bundle as module
from tfdeploy.plan import default_exclusions
from tfdeploy.plan.code_bundle import archive, changed_files, collect


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A folder of code with one program in it; nothing above it is a Git repository."""
    folder = tmp_path / "project" / "code"
    lay(folder, {"train.py": "print(1)"})
    return folder


def lay(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def shipped(folder: Path, *without: Path) -> str:
    """What is shipped, a name a line."""
    return "\n".join(collect("mnist", folder, without).files)


def refusal(folder: Path) -> str:
    with pytest.raises(BundleError) as error:
        collect("mnist", folder)
    return str(error.value)


def test_the_same_content_has_the_same_name_and_archive_wherever_and_whenever(code: Path, tmp_path: Path) -> None:
    lay(code, {"a/b.py": "2"})
    other = tmp_path / "elsewhere"
    lay(other, {"a/b.py": "2", "train.py": "print(1)"})
    os.utime(other / "train.py", (0, 0))
    here, there = collect("mnist", code), collect("mnist", other)
    assert here.name == there.name
    assert archive(here) == archive(there)


@pytest.mark.parametrize("change", ["text", "name", "more", "joined"])
def test_another_content_has_another_name(code: Path, change: str) -> None:
    (code / "z.py").write_text("2")
    before = collect("mnist", code).name
    program = code / "train.py"
    if change == "text":
        program.write_text("print(2)")
    elif change == "name":
        program.rename(code / "trial.py")
    elif change == "more":
        (code / "empty.py").touch()
    else:
        (code / "z.py").unlink()
        program.write_bytes(b"print(1)z.py\x002")
    assert collect("mnist", code).name != before


def test_the_archive_has_what_was_hashed_although_the_files_change(code: Path) -> None:
    before = collect("mnist", code)
    expected = archive(before)
    (code / "train.py").write_text("print(2)")
    assert archive(before) == expected
    (code / "train.py").unlink()
    assert archive(before) == expected


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"train.py": "other"}, "train.py changed"),
        ({"new.py": "1", "pack/new.py": "1"}, "new.py added, pack/new.py added"),
        ({"train.py": ""}, "train.py changed"),
        ({"gone.py": None}, "gone.py removed"),
        (
            {f"m{number:02}.py": "1" for number in range(12)},
            ", ".join(f"m{n:02}.py added" for n in range(10)) + ", 2 more",
        ),
    ],
)
def test_the_changed_files_are_named(tmp_path: Path, change: dict[str, str | None], said: str) -> None:
    lay(tmp_path, {"train.py": "print(1)", "gone.py": "2", "run.sh": "true"})
    earlier = archive(collect("test", tmp_path))
    for name in [name for name, text in change.items() if text is None]:
        (tmp_path / name).unlink()
    lay(tmp_path, {name: text for name, text in change.items() if text is not None})
    assert changed_files(collect("test", tmp_path), earlier) == said


def test_a_bundle_says_files_and_bytes(code: Path) -> None:
    lay(code, {"more.py": "x" * 2040})
    assert str(collect("mnist", code)) == "2 files, 2 KiB"


LEFT_OUT = {
    "version control": ".git/HEAD .hg/x .svn/x .jj/x a/CVS/Entries",
    "python": ".venv/bin/python venv/bin/python __pycache__/x a/__pycache__/b.pyc a/old.pyc a/old.pyo .mypy_cache/x .pytest_cache/x "
    ".ruff_cache/x .tox/x .hypothesis/x node_modules/x/y",
    "pulumi and logs": "Pulumi.yaml Pulumi.dev.yaml .pulumi/x up.log nohup.out",
    "editors": ".ipynb_checkpoints/x .train.py.swo .train.py.swp .train.py.swa train.py~ #train.py# .#train.py .~lock.notes.odt# "
    "~$notes.docx a/.idea/x .vscode/settings.json .train.py.kate-swp .train.py.un~ train.py.orig .~train.ipynb train.py___jb_tmp___ "
    "x.sublime-workspace .goutputstream-AB12CD",
    "desktops": ".DS_Store ._train.py a/.directory Thumbs.db thumbs.db desktop.ini .Trash-1000/x __MACOSX/x train.py:Zone.Identifier",
    "file systems": ".nfs00000001 .fuse_hidden0001 .cifs1A .smbdeleteAAA1 .__afs12 lost+found/x .dropbox .stfolder/x "
    ".syncthing.train.py.tmp",
    "coverage": ".coverage .coverage.host.123 htmlcov/index.html coverage.xml",
    "trackers": "mlruns/0/meta.yaml wandb/run-1/x lightning_logs/version_0/x events.out.tfevents.1.host a/.neptune/x mlflow.db .aim/x",
}
"""What editors, desktops, network file systems, coverage and experiment trackers leave beside code."""


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_what_is_no_code_is_left_out(code: Path, kind: str) -> None:
    before = collect("mnist", code).name
    lay(code, dict.fromkeys(LEFT_OUT[kind].replace("~$notes", "~$my_notes").split(), ""))
    assert shipped(code) == "train.py"
    assert collect("mnist", code).name == before


def test_names_that_are_like_those_of_other_programs_are_shipped(code: Path) -> None:
    similar = ".coveragerc .hidden a/b.py env.py git.py mlruns.py nfs.py swap.py tokenizer.json wandb.yaml"
    lay(code, dict.fromkeys(similar.split(), ""))
    bundle = collect("mnist", code)
    assert " ".join(bundle.files) == similar.replace("tokenizer.json", "tokenizer.json train.py")
    assert (bundle.notices, bundle.warnings) == ((), ())


@pytest.mark.parametrize("name", [".#train.py", "a/.#b.py", ".nfs01", "._x", "x~"])
def test_a_dangling_link_of_an_editor_is_left_out(code: Path, name: str) -> None:
    lay(code, {"a/b.py": ""})
    (code / name).symlink_to("me@host.1:2")
    assert shipped(code) == "a/b.py\ntrain.py"


LISTED = """
    .aws/ .azure/ .boto .databrickscfg .docker/config.json .dockercfg .dockerconfigjson .env .env.local .gcloud/ .git-credentials
    .gnupg/ .htpasswd .kaggle/ .kube/ .my.cnf .netrc .npmrc .oci/ .pgpass .pypirc .s3cfg .secrets.toml .ssh/ .vault-token
    .vault_pass.txt _netrc a/.env.production a/id_ed25519.pub a/secrets.yml ada_accessKeys.csv
    application_default_credentials.json client_secret_1.json
    credentials credentials.cfg credentials.conf credentials.env credentials.ini credentials.json credentials.properties
    credentials.toml credentials.yaml credentials.yml id_dsa id_ecdsa id_rsa kaggle.json kubeconfig mnist-firebase-adminsdk-1.json
    my-service-account-key.json my_service_account.json office.ovpn passwords.kdb passwords.kdbx putty.ppk rootkey.csv secrets.cfg
    secrets.conf secrets.env secrets.ini secrets.json secrets.properties secrets.toml secrets.yaml server.pem store.jks store.keystore
    store.p12 store.p8 store.pfx terraform.tfstate tls/server.key
"""
CREDENTIALS = LISTED.split()
"""Each kind of file, and of folder, that often has keys or passwords in it."""


def test_keys_and_credentials_are_not_shipped_and_are_listed(code: Path) -> None:
    shipped_too = [".env.example", ".env.sample", ".env.template", "config.json", "keys.py", "train.py"]
    lay(code, {name + "x" * name.endswith("/"): "" for name in [*CREDENTIALS, *shipped_too]})
    bundle = collect("mnist", code)
    assert [*bundle.files] == shipped_too
    assert sorted(bundle.credentials) == CREDENTIALS


def test_no_pattern_of_credentials_is_without_an_example() -> None:
    for pattern in default_exclusions.CREDENTIALS:
        spec = GitIgnoreSpec.from_lines([pattern.removeprefix("!")])
        assert any(spec.match_file(name) for name in [*CREDENTIALS, ".env.example", ".env.sample", ".env.template"]), (
            pattern
        )


def test_what_the_user_ignores_or_includes_is_not_listed(code: Path) -> None:
    lay(code, {".gitignore": ".env\n", ".tfdeployignore": "!ca.pem\n", ".env": "", "ca.pem": ""})
    bundle = collect("mnist", code)
    assert (bundle.credentials, bundle.notices) == ((), ())
    assert "ca.pem" in bundle.files


def test_many_credentials_are_one_short_line(code: Path) -> None:
    lay(code, {f"{number:02}.pem": "" for number in range(12)})
    (notice,) = collect("mnist", code).notices
    assert "such names: 00.pem, " in notice
    assert '08.pem, 09.pem and 2 more. If the program needs one, add a line such as "!00.pem" to' in notice


SUSPECTS = {
    "token.txt": "abc",
    "hf_token": "abc",
    "my-secret.txt": "abc",
    "conf/api_key.json": "{}",
    "db.password": "abc",
    "password.txt": "abc",
    "wandb-key.txt": "abc",
    "settings.py": "KEY = 'AKIAIOSFODNN7EXAMPLE'",
    "deploy": "-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
    "push.py": "token = 'ghp_" + "a" * 36 + "'",
    "hub.py": "login('hf_" + "a" * 34 + "')",
    "sa.txt": '{"type": "service_account"}',
}
UNSUSPECTED = {
    "token.example.txt": "abc",
    "secrets.template.txt": "abc",
    "tokens.txt": "abc",
    "tokenizer_config.json": "{}",
    "token.py": "abc",
    "keyboard.txt": "abc",
    "monkey.txt": "abc",
    "public.txt": "-----BEGIN PUBLIC KEY-----\nabc",
    "README.txt": "AKIA and hf_ begin keys",
}


def test_what_looks_like_a_key_is_shipped_with_a_warning(code: Path) -> None:
    lay(code, {**SUSPECTS, **UNSUSPECTED})
    assert collect("mnist", code).suspects == tuple(sorted(SUSPECTS))


def test_the_warning_of_what_looks_like_a_key_can_be_ended(code: Path) -> None:
    lay(code, {"token.txt": "", "a/my_token": ""})
    (warning,) = collect("mnist", code).warnings
    assert warning == (
        "code: shipped to every task, and may have keys or passwords: a/my_token, token.txt. Give them to the program by `secrets`, "
        'and list the file in .tfdeployignore; if it has none, a line such as "!a/my_token" there ends this warning'
    )
    lay(code, {".tfdeployignore": "!a/my_token\ntoken.txt\n"})
    bundle = collect("mnist", code)
    assert (bundle.warnings, "a/my_token" in bundle.files, "token.txt" in bundle.files) == ((), True, False)


def test_the_pulumi_program_and_the_data_are_left_out_by_name(code: Path) -> None:
    lay(code, {"__main__.py": "", "data/a.npz": "", "data/deep/b": "", "runs/ckpt": ""})
    assert shipped(code, code / "__main__.py", code / "data", code / "runs") == "train.py"


IGNORED: dict[str, tuple[dict[str, str], str]] = {
    "in the folder": ({".gitignore": "*.log\n/top.txt\n", "a.log": "", "top.txt": "", "a/top.txt": ""}, "a/top.txt"),
    "below the folder": ({"a/.gitignore": "local\n", "a/local": "", "local": ""}, "local"),
    "in the repository": (
        {"../.git/HEAD": "", "../.gitignore": "*.ckpt\n/code/a\n", "b.ckpt": "", "a": "", "b/a": ""},
        "b/a",
    ),
    "above the repository": ({"../.git/HEAD": "", "../../.gitignore": "*.py\n"}, ""),
    "outside a repository": ({"../.gitignore": "*.py\n"}, ""),
    "taken back": (
        {".gitignore": "*.txt\n!keep.txt\n!.env\n", "a.txt": "", "keep.txt": "", ".env": ""},
        ".env keep.txt",
    ),
    "not taken back": ({".gitignore": "!keep.txt\n", "a/.gitignore": "keep.txt\n", "a/keep.txt": ""}, ""),
    "the last word": (
        {".gitignore": "model.bin\n", ".tfdeployignore": "!model.bin\nnotes/\n", "model.bin": "", "notes/a": ""},
        "model.bin",
    ),
}
"""Files beside train.py, and which of them are shipped; ignore files are too."""


@pytest.mark.parametrize("case", IGNORED)
def test_ignore_files_say_what_is_not_shipped(code: Path, case: str) -> None:
    files, found = IGNORED[case]
    lay(code, files)
    names = [name for name in shipped(code).split() if not name.endswith("ignore")]
    assert names == sorted([*found.split(), "train.py"])


READ_AS_GIT = {
    "a byte order mark": b"\xef\xbb\xbfdata/\n",
    "Windows line ends": b"# all\r\ndata/\r\n",
    "the last line without an end": b"*.x\r\ndata/",
    "spaces at the end": b"data/   \n",
    "an escaped letter": b"d\\ata/\n",
    "another encoding": b"# caf\xe9\ndata/\n",
}
NOT_READ = {
    "a space at the beginning": b" data/\n",
    "an escaped space at the end": b"data\\ \n",
    "a line separator": "x\u2028data/\n".encode(),
}
"""What `git check-ignore` 2.39 says of `data/a` with each of these files."""


@pytest.mark.parametrize("file", [".gitignore", ".tfdeployignore", "a/.gitignore"])
@pytest.mark.parametrize(
    ("content", "is_ignored"), [(READ_AS_GIT, True), (NOT_READ, False)], ids=["ignored", "shipped"]
)
def test_ignore_files_are_read_as_by_git(code: Path, file: str, content: dict[str, bytes], is_ignored: bool) -> None:
    data = Path(file).parent / "data" / "a"
    lay(code, {file: "", str(data): ""})
    for title, text in content.items():
        (code / file).write_bytes(text)
        assert (str(data) not in collect("mnist", code).files) == is_ignored, title


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_an_ignore_file_that_git_cannot_read_is_refused(code: Path, mark: bytes) -> None:
    (code / ".gitignore").write_bytes(mark + "data/".encode("utf-16-le"))
    assert refusal(code) == f"mnist: code: {code}/.gitignore is in UTF-16, which Git does not read. Save it in UTF-8."


@pytest.mark.parametrize("kind", ["repository", "work tree", "submodule"])
def test_the_excludes_of_a_repository_are_read(code: Path, tmp_path: Path, kind: str) -> None:
    git = tmp_path / "git"
    lay(git, {"info/exclude": "data/\n*.bin\n"})
    if kind == "repository":
        git.rename(code.parent / ".git")
    elif kind == "submodule":
        lay(code.parent, {".git": "gitdir: ../git\n"})
    else:
        lay(git, {"worktrees/code/commondir": "../..\n"})
        lay(code.parent, {".git": f"gitdir: {git}/worktrees/code\n"})
    lay(code, {"data/a": "", "a.bin": "", "b.bin": "", ".gitignore": "!b.bin\n"})
    assert shipped(code) == ".gitignore\nb.bin\ntrain.py"


def test_an_ignore_file_that_cannot_be_understood_is_refused(code: Path) -> None:
    lay(code, {"a/.gitignore": "!\n"})
    ignore = code / "a" / ".gitignore"
    assert refusal(code) == f"mnist: code: {ignore} cannot be parsed (Invalid git pattern: '!'). Correct that line."


def test_a_link_that_stays_inside_is_shipped_as_what_it_leads_to(code: Path) -> None:
    lay(code, {"lib/a.py": "1"})
    lay(code, {"deep/.gitignore": "*.log\n"})
    (code / "deep" / "up.py").symlink_to("../train.py")
    (code / "same").symlink_to("lib")
    (code / "again.py").symlink_to("train.py")
    assert shipped(code) == "again.py\ndeep/.gitignore\ndeep/up.py\nlib/a.py\nsame/a.py\ntrain.py"


def test_a_link_to_what_is_left_out_is_left_out(code: Path) -> None:
    lay(code, {".env": "SECRET=1", ".venv/lib/a.py": ""})
    (code / "config").symlink_to(".env")
    (code / "lib").symlink_to(".venv/lib")
    assert shipped(code) == "train.py"


@pytest.mark.parametrize("target", ["../outside.txt", "..", "../../missing"])
def test_a_link_that_leads_out_is_refused(code: Path, target: str) -> None:
    lay(code.parent, {"outside.txt": ""})
    (code / "link").symlink_to(target)
    leads = Path(os.path.normpath(code / target))
    wrong = f"{code / 'link'} is a link to {leads}, which is outside of that folder"
    assert refusal(code) == f"mnist: code: {wrong}. Replace it by a copy."


def test_a_link_that_is_ignored_may_lead_anywhere(code: Path) -> None:
    (code / "data").symlink_to("/")
    lay(code, {".tfdeployignore": "data\n"})
    assert shipped(code) == ".tfdeployignore\ntrain.py"


@pytest.mark.parametrize("target", [".", "deep", "deep/.."])
def test_a_link_in_a_circle_is_refused(code: Path, target: str) -> None:
    (code / "deep").mkdir()
    (code / "deep" / "link").symlink_to(code / target)
    assert refusal(code) == f"mnist: code: {code}/deep/link is a link to a folder that contains it. Remove it."


@pytest.mark.parametrize("target", ["link", "missing"])
def test_a_link_to_nothing_is_refused(code: Path, target: str) -> None:
    (code / "link").symlink_to(target)
    wrong = f"{code / 'link'} is a link to something that does not exist"
    assert refusal(code) == f"mnist: code: {wrong}. Remove it, or list it in .tfdeployignore."


def test_sockets_and_pipes_are_not_shipped(code: Path) -> None:
    os.mkfifo(code / "pipe")
    with socket.socket(socket.AF_UNIX) as editor:
        editor.bind(str(code / "editor.sock"))
        assert shipped(code) == "train.py"


def test_the_modes_of_files_do_not_count_and_what_can_be_started_is_executable(code: Path) -> None:
    lay(code, {"run.sh": "#!/bin/sh\n"})
    before = collect("mnist", code)
    items = zipfile.ZipFile(BytesIO(archive(before))).infolist()
    assert [(item.filename, item.external_attr >> 16) for item in items] == [("run.sh", 0o755), ("train.py", 0o644)]
    for name in before.files:
        (code / name).chmod(0o777)
    assert collect("mnist", code).name == before.name


@pytest.mark.parametrize(
    ("folder", "wrong"),
    [
        ("missing", "{} does not exist. Name a folder, relative to the Pulumi program's."),
        ("code/train.py", "{} is a file, not a folder"),
        ("empty", "{} has no file. Put the program there, name another folder, or leave out `code`."),
        ("/", "/ is the root of the file system. Name the folder of the program."),
    ],
)
def test_what_is_no_folder_of_code_is_refused(code: Path, folder: str, wrong: str) -> None:
    (code.parent / "empty").mkdir()
    assert refusal(code.parent / folder).startswith(f"mnist: code: {wrong.format(code.parent / folder)}")


WAY_ON = "Put the program there, name another folder, or leave out `code`."


def test_a_folder_of_which_nothing_is_shipped_is_refused_with_the_reasons(code: Path) -> None:
    lay(code.parent, {".git/HEAD": "", ".gitignore": "train.py\n"})
    lay(code, {"data/a": "", ".env": "", ".DS_Store": ""})
    with pytest.raises(EmptyBundle) as error:
        collect("mnist", code, [code / "data"])
    assert str(error.value) == (
        f"mnist: code: {code} has no file that is shipped. Not shipped: .DS_Store (it is not code), .env (it may be a key or a "
        "password), data/ (it is the Pulumi program, its data, or what this command writes), train.py (.gitignore names it). "
        + WAY_ON
    )


def test_a_home_folder_is_refused_where_it_is_too_large(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(code))
    assert shipped(code) == "train.py"
    monkeypatch.setattr(module, "MOST_BYTES", 5)
    assert f"{code}, your home folder, has 1 file and 8 B so far" in refusal(code)


def test_a_name_that_is_not_utf8_is_refused(code: Path) -> None:
    (code / os.fsdecode(b"caf\xe9")).touch()
    assert refusal(code) == "mnist: code: the name of 'caf\\udce9' is not in UTF-8. Rename the file."


def test_a_huge_file_is_refused_before_a_file_is_read(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} was read"))
    with (code / "z.bin").open("wb") as file:
        file.truncate(2**40)
    assert refusal(code) == (
        f"mnist: code: {code} has 2 files and 1.0 TiB so far, and at most 10000 files and 100 MiB are shipped. Name the folder of the "
        "program alone, or list what is not code in .tfdeployignore; data belongs into `data_dir`. The largest file so far is "
        "z.bin (1 TiB)."
    )


def test_too_many_files_are_refused(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 3)
    lay(code, {"a": "", "b": ""})
    assert shipped(code) == "a\nb\ntrain.py"
    lay(code, {"c": ""})
    assert "has 4 files and 8 B so far, and at most 3 files and 100 MiB are shipped" in refusal(code)
