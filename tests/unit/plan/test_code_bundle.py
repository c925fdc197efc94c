"""A folder of code becomes one archive, named by its content."""

import os
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from pathspec import GitIgnoreSpec

from tfdeploy.errors import BundleError
from tfdeploy.plan import code_bundle as module
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


@pytest.mark.parametrize("change", ["text", "name", "mode", "more", "joined"])
def test_another_content_has_another_name(code: Path, change: str) -> None:
    (code / "z.py").write_text("2")
    before = collect("mnist", code).name
    program = code / "train.py"
    if change == "text":
        program.write_text("print(2)")
    elif change == "name":
        program.rename(code / "trial.py")
    elif change == "mode":
        program.chmod(0o755)
    elif change == "more":
        (code / "empty.py").touch()
    else:
        (code / "z.py").unlink()
        program.write_bytes(b"print(1)z.py\x002")
    assert collect("mnist", code).name != before


def test_the_archive_holds_the_files_with_their_executable_bits(code: Path) -> None:
    lay(code, {"tools/run.sh": "#!/bin/sh", "data/x.bin": "\0\1"})
    (code / "tools/run.sh").chmod(0o755)
    with zipfile.ZipFile(BytesIO(archive(collect("mnist", code)))) as held:
        rows = [(item.filename, oct(item.external_attr >> 16), held.read(item)) for item in held.infolist()]
    assert rows == [
        ("data/x.bin", "0o644", b"\0\1"),
        ("tools/run.sh", "0o755", b"#!/bin/sh"),
        ("train.py", "0o644", b"print(1)"),
    ]


def test_the_archive_has_what_was_hashed_although_the_files_change(code: Path) -> None:
    before = collect("mnist", code, with_content=True)
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


def test_a_file_that_has_become_executable_is_named(tmp_path: Path) -> None:
    lay(tmp_path, {"run.sh": "true"})
    earlier = archive(collect("test", tmp_path))
    (tmp_path / "run.sh").chmod(0o755)
    assert changed_files(collect("test", tmp_path), earlier) == "run.sh changed"


def test_a_bundle_says_files_and_bytes(code: Path) -> None:
    lay(code, {"more.py": "x" * 2040})
    assert str(collect("mnist", code)) == "2 files, 2 KiB"


def test_what_is_no_code_is_left_out(code: Path) -> None:
    left_out = [
        ".git/HEAD",
        ".hg/x",
        ".svn/x",
        ".venv/bin/python",
        "venv/bin/python",
        "__pycache__/x",
        "a/__pycache__/b.pyc",
        "a/old.pyc",
        "a/old.pyo",
        ".mypy_cache/x",
        ".pytest_cache/x",
        ".ruff_cache/x",
        ".ipynb_checkpoints/x",
        "node_modules/x/y",
        ".DS_Store",
        "Pulumi.yaml",
        "Pulumi.dev.yaml",
        ".pulumi/x",
        "up.log",
        "nohup.out",
        ".train.py.swo",
        ".train.py.swp",
        "train.py~",
    ]
    lay(code, {**dict.fromkeys(left_out, ""), "a/b.py": "", "env.py": "", ".hidden": ""})
    assert shipped(code) == ".hidden\na/b.py\nenv.py\ntrain.py"


LISTED = """
    .aws/ .azure/ .docker/config.json .env .env.local .gcloud/ .git-credentials .gnupg/ .htpasswd .kube/ .netrc .npmrc .pgpass .pypirc
    .ssh/ .vault-token _netrc a/.env.production a/id_ed25519.pub application_default_credentials.json client_secret_1.json
    credentials.json id_dsa id_ecdsa id_rsa kubeconfig my-service-account-key.json my_service_account.json passwords.kdbx putty.ppk
    server.pem store.p12 store.pfx tls/server.key
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
    for pattern in module.CREDENTIALS:
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


def test_the_pulumi_program_and_the_data_are_left_out_by_name(code: Path) -> None:
    lay(code, {"__main__.py": "", "data/a.npz": "", "data/deep/b": "", "runs/ckpt": ""})
    assert shipped(code, code / "__main__.py", code / "data", code / "runs") == "train.py"


def test_gitignore_is_heeded_in_the_folder_and_below_it(code: Path) -> None:
    lay(code, {".gitignore": "*.log\n/top.txt\n", "a.log": "", "top.txt": "", "a/top.txt": "", "a/b.log": ""})
    lay(code, {"a/.gitignore": "local\n", "a/local": "", "local": ""})
    assert shipped(code) == ".gitignore\na/.gitignore\na/top.txt\nlocal\ntrain.py"


def test_gitignore_is_heeded_above_the_folder_up_to_the_repository(code: Path) -> None:
    lay(code.parent, {".git/HEAD": "", ".gitignore": "*.ckpt\n/code/only_here\n"})
    lay(code.parent.parent, {".gitignore": "*.py\n"})
    lay(code, {"a.ckpt": "", "only_here": "", "a/only_here": ""})
    assert shipped(code) == "a/only_here\ntrain.py"


def test_gitignore_above_the_folder_is_not_read_outside_a_repository(code: Path) -> None:
    lay(code.parent, {".gitignore": "*.py\n"})
    assert shipped(code) == "train.py"


def test_an_exclamation_mark_takes_back(code: Path) -> None:
    lay(code, {".gitignore": "*.txt\n!keep.txt\n!.env\n", "a.txt": "", "keep.txt": "", ".env": "", "a/keep.txt": ""})
    lay(code, {"a/.gitignore": "keep.txt\n"})
    assert shipped(code) == ".env\n.gitignore\na/.gitignore\nkeep.txt\ntrain.py"


def test_tfdeployignore_has_the_last_word(code: Path) -> None:
    lay(code, {".gitignore": "model.bin\n", ".tfdeployignore": "!model.bin\nnotes/\n", "model.bin": "", "notes/a": ""})
    assert shipped(code) == ".gitignore\n.tfdeployignore\nmodel.bin\ntrain.py"


def test_ignore_files_in_another_encoding_are_read(code: Path) -> None:
    (code / ".gitignore").write_bytes(b"# caf\xe9\n*.log\n")
    lay(code, {"a.log": ""})
    assert shipped(code) == ".gitignore\ntrain.py"


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
    assert (
        refusal(code)
        == f"mnist: code: {code / 'link'} is not a file or folder. Remove it, or list it in .tfdeployignore."
    )


def test_what_is_no_file_is_refused(code: Path) -> None:
    os.mkfifo(code / "pipe")
    assert (
        refusal(code)
        == f"mnist: code: {code / 'pipe'} is not a file or folder. Remove it, or list it in .tfdeployignore."
    )


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert refusal(missing) == (
        f"mnist: code: {missing} does not exist. Name a folder, relative to the Pulumi program's."
    )


def test_a_file_in_place_of_the_folder_is_refused(code: Path) -> None:
    assert "train.py is a file, not a folder" in refusal(code / "train.py")


def test_a_folder_of_which_nothing_is_shipped_is_refused(code: Path) -> None:
    lay(code.parent, {".git/HEAD": "", ".gitignore": "code/\n"})
    assert refusal(code) == (
        f"mnist: code: {code} has no file that is shipped. "
        "Check .gitignore, also of the folders above; or leave out `code`."
    )


def test_a_name_that_is_not_utf8_is_refused(code: Path) -> None:
    (code / os.fsdecode(b"caf\xe9")).touch()
    assert refusal(code) == "mnist: code: the name of 'caf\\udce9' is not in UTF-8. Rename the file."


def test_a_huge_file_is_refused_unread(code: Path) -> None:
    with (code / "data.bin").open("wb") as file:
        file.truncate(2**40)
    assert refusal(code) == (
        f"mnist: code: {code} has more than 10000 files or 100 MiB. "
        "List what is not code in .tfdeployignore. The largest file so far is data.bin (1 TiB)."
    )


def test_too_many_files_are_refused(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 3)
    lay(code, {"a": "", "b": ""})
    assert shipped(code) == "a\nb\ntrain.py"
    lay(code, {"c": ""})
    assert "has more than 3 files or 100 MiB" in refusal(code)
