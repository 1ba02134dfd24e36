"""`gemm-course bundle`: which packages are fetched, for which Python."""

import sys
from pathlib import Path

import pytest

from gemm_course.commands import bundle

MINOR = "{}.{}".format(*sys.version_info[:2])
LISTED = f"""both==1
old==1 ; python_full_version < '{MINOR}.5'
new==2 ; python_full_version >= '{MINOR}.5'
"""


@pytest.fixture
def asked(monkeypatch) -> list[list[str]]:
    """What is asked of uv and of pip, neither of which runs."""
    commands = []

    def do(command: list[str]) -> None:
        commands.append(command)
        if "export" in command:
            Path(command[-1]).write_text(LISTED)

    monkeypatch.setattr(bundle, "_do", do)
    monkeypatch.setattr(bundle.shutil, "which", lambda *name, **where: "uv")
    monkeypatch.setattr(bundle, "release_course", lambda folder, solutions: folder.mkdir())
    return commands


def test_every_patch_of_this_python_gets_its_packages(asked, tmp_path):
    """pip would refuse those that are for another patch than the one that it runs on itself."""
    bundle.bundle(tmp_path / "bundle", True, None)
    by_python = {command[-3]: command[-2:] for command in asked if "--no-deps" in command}
    assert by_python == {
        f"--python-version={MINOR}.0": ["both==1", "old==1"],
        f"--python-version={MINOR}.99": ["both==1", "new==2"],
    }
