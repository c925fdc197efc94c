"""The site of the pages is built without a warning: no page is missing, and no link leads nowhere."""

import subprocess
import sys
from pathlib import Path

from tools.site import ROOT, assemble


def test_the_site_is_built(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.site", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for page in (
        "index.html",
        "docs/get-started/index.html",
        "docs/limits/index.html",
        "docs/how-to/inspect/index.html",
    ):
        assert "tfdeploy" in (tmp_path / "site" / page).read_text()


def test_a_link_to_a_folder_or_another_file_is_one_that_a_site_can_have(tmp_path: Path) -> None:
    (tmp_path / "root/docs").mkdir(parents=True)
    (tmp_path / "root/with").mkdir()
    (tmp_path / "root/without").mkdir()
    for name in ("LICENSE", "with/README.md", "docs/b.md"):
        (tmp_path / "root" / name).write_text("text")
    page = "[a](../LICENSE) [b](../with) [c](../without/) [d](b.md#there) [e](https://example.com/) [f](none.md)"
    (tmp_path / "root/docs/a.md").write_text(page)
    assemble(tmp_path / "pages", tmp_path / "root")
    assert (tmp_path / "pages/docs/a.md").read_text() == (
        "[a](../LICENSE) [b](../with/README.md) c [d](b.md#there) [e](https://example.com/) [f](none.md)"
    )
    assert (tmp_path / "pages/LICENSE").exists()
