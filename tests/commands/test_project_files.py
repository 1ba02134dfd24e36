"""The files that describe the project: true, and in step with each other."""

import re
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from gemm_course import road
from gemm_course.cli import command_names
from tests.notebooks.builder import source_of

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
CONDA_NAMES = {"matplotlib": "matplotlib-base"}  # the one without a desktop toolkit
FROM_PYPI = {"numba-cuda"}  # comes with the course itself, by the marker in pyproject.toml


def conda_specifiers() -> dict[str, SpecifierSet]:
    """Return the conda packages with their versions, conda's `=0.68` as Python's `==0.68.*`."""
    found = {}
    for line in CONDA["dependencies"]:
        if isinstance(line, str):
            name, version = re.fullmatch(r"([a-z0-9-]+)(.*)", line).groups()
            found[name] = SpecifierSet(re.sub(r"^=([\d.]+)$", r"==\1.*", version))
    return found


def test_conda_installs_what_pyproject_asks_for():
    wanted = {}
    for requirement in map(Requirement, PROJECT["dependencies"]):
        if requirement.name not in FROM_PYPI:
            wanted[CONDA_NAMES.get(requirement.name, requirement.name)] = requirement.specifier
    wanted |= {"python": SpecifierSet(PROJECT["requires-python"]), "pip": SpecifierSet()}
    assert conda_specifiers() == wanted


def test_conda_installs_the_course_and_with_it_the_rest():
    assert {"pip": ["-e ."]} in CONDA["dependencies"]
    assert CONDA["name"] == PROJECT["name"]


def test_the_lock_file_names_public_registries_only():
    hosts = {urlsplit(url).netloc for url in re.findall(r'"(\w+://[^"]+)"', (ROOT / "uv.lock").read_text())}
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_the_lock_file_holds_what_pyproject_asks_for():
    locked: dict[str, list[str]] = {}
    for package in LOCK["package"]:
        locked.setdefault(package["name"], []).append(package.get("version", ""))
    for requirement in map(Requirement, PROJECT["dependencies"]):
        versions = locked[canonicalize_name(requirement.name)]
        assert all(version in requirement.specifier for version in versions), requirement


def test_macos_gets_no_numba_cuda_and_others_do():
    for system, expected in (("darwin", False), ("linux", True), ("win32", True)):
        names = set()
        for requirement in map(Requirement, PROJECT["dependencies"]):
            if requirement.marker is None or requirement.marker.evaluate({"sys_platform": system}):
                names.add(requirement.name)
        assert ("numba-cuda" in names) == expected
        assert "numba" in names


def extra(name: str) -> set[tuple[str, ...]]:
    """Return an extra's requirements as (name, extra of its own, versions); none of them is for macOS."""
    wanted = [Requirement(line) for line in PROJECT["optional-dependencies"][name]]
    assert not any(requirement.marker.evaluate({"sys_platform": "darwin"}) for requirement in wanted)
    return {(requirement.name, *requirement.extras, str(requirement.specifier)) for requirement in wanted}


def test_the_compiler_is_that_of_the_gpu_packages():
    assert extra("compiler") < extra("gpu-cu13")
    assert {name for name, *_ in extra("compiler")} == {"numba-cuda", "nvidia-cuda-nvdisasm", "pyelftools"}


@pytest.mark.parametrize("version", ["12", "13"])
def test_the_gpu_packages_bring_cupy_and_cublas_of_one_cuda_version(version):
    found = extra(f"gpu-cu{version}")
    names = {"numba-cuda", "cuda-toolkit", "nvidia-cuda-nvdisasm", "pyelftools", f"cupy-cuda{version}x"}
    assert {name for name, *_ in found} == names
    assert ("cuda-toolkit", "cublas", f"=={version}.*") in found


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_and_paths_lead_somewhere(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    images = re.findall(r'<img[^>]+src="([^"]+)"', text)
    assert not [link for link in links + images if not (ROOT / link.split("#")[0]).exists()]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_commands_shown_exist(name):
    from gemm_course.cli import command_names

    text = (ROOT / name).read_text(encoding="utf-8")
    used = set(re.findall(r"(?:gemm-course|course\.py) ([a-z]+)", text))
    assert used
    assert used <= set(command_names())


def test_the_readme_gives_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "python3 course.py lab" in text and "python3 course.py test" in text


def test_the_python_versions_are_the_same_everywhere():
    low, high = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", PROJECT["requires-python"]).groups()
    versions = f"3.{low} to 3.{int(high) - 1}"
    for name in ("course.py", "README.md"):
        assert versions in (ROOT / name).read_text(encoding="utf-8")


def test_teaching_says_what_the_notebooks_say():
    """Minutes of each notebook, and commands that exist."""
    text = (ROOT / "TEACHING.md").read_text(encoding="utf-8")
    minutes = re.compile(r"Time: about (\d+) minutes to read, (\d+) for the exercises")
    for notebook in road.NOTEBOOKS:
        said = minutes.search(source_of(notebook.topic).replace("\n#", ""))
        row = rf"^\| {notebook.number} \| [^|]+ \| {said[1]} \| {said[2]} \|$"
        assert re.search(row, text, re.MULTILINE), f"{notebook.name} has another line, or none"
    for command in set(re.findall(r"gemm-course ([a-z]+)", text)):
        assert command in command_names()


def test_the_readme_has_a_row_for_each_notebook_with_its_number():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(S?\d\d)\]\(notebooks/(\w+)\.ipynb\) \|", text, re.MULTILINE)
    assert rows == [(notebook.number, notebook.name) for notebook in road.NOTEBOOKS]
