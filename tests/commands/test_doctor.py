"""`gemm-course doctor`: what it finds, and what it advises."""

from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest

from gemm_course import records
from gemm_course.commands import doctor

NO_DRIVER = "There is no NVIDIA GPU here: no NVIDIA driver is installed."
FACTS = SimpleNamespace(name="NVIDIA Test", compute_capability=(9, 0), driver="580.1")


def by_subject() -> dict[str, doctor.Finding]:
    return {finding.subject: finding for finding in doctor.examine()}


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(doctor, "why_no_gpu", lambda: NO_DRIVER)
    monkeypatch.setattr(doctor, "ask_nvidia_smi", lambda field: None)


def test_a_machine_without_a_gpu_is_in_order(no_gpu):
    found = by_subject()
    assert found["GPU"] == doctor.Finding("GPU", "none")
    assert "emulator" in found["kernels run"].found
    assert {"course", "Python", "numba", "numpy", "jupyterlab", "numba.cuda", "tests"} <= set(found)
    assert found["numpy"].advice is None


def test_a_gpu_without_its_packages_is_told_which(monkeypatch):
    monkeypatch.setattr(doctor, "why_no_gpu", lambda: "NVVM is missing.")
    monkeypatch.setattr(doctor, "ask_nvidia_smi", lambda field: "NVIDIA Test")
    monkeypatch.setattr(doctor, "_course_script", lambda: SimpleNamespace(gpu_extra=lambda: "gpu-cu13"))
    found = by_subject()
    assert found["GPU"].found == "NVIDIA Test"
    assert found["GPU"].advice.startswith("NVVM is missing.") and "gpu-cu13" in found["GPU"].advice


def test_a_driver_too_old_is_told(monkeypatch):
    monkeypatch.setattr(doctor, "why_no_gpu", lambda: "It did not start.")
    monkeypatch.setattr(doctor, "ask_nvidia_smi", lambda field: "NVIDIA Test")
    monkeypatch.setattr(doctor, "_course_script", lambda: SimpleNamespace(gpu_extra=lambda: None))
    assert "525" in by_subject()["GPU"].advice


def test_a_gpu_in_use_is_described(monkeypatch):
    monkeypatch.setattr(doctor, "why_no_gpu", lambda: None)
    monkeypatch.setattr(doctor, "gpu_facts", lambda: FACTS)
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: "/bin/ncu")
    found = by_subject()
    assert found["GPU"].found == "NVIDIA Test, compute capability 9.0, driver 580.1"
    assert "on the GPU" in found["kernels run"].found
    assert "course.py" in found["cuBLAS"].advice
    assert found["Nsight Compute"] == doctor.Finding("Nsight Compute", "/bin/ncu")


def test_the_extra_is_chosen_by_course_py():
    assert doctor._course_script().gpu_extra.__doc__.startswith("Return the extra")


@pytest.mark.parametrize(("installed", "found"), [("0.1", "0.1"), (None, "missing")])
def test_a_package_missing_or_of_another_version_is_advised(monkeypatch, no_gpu, installed, found):
    def version(name):
        if name == "numpy" and installed is None:
            raise PackageNotFoundError
        return installed if name == "numpy" else real(name)

    real = doctor.version
    monkeypatch.setattr(doctor, "version", version)
    numpy = by_subject()["numpy"]
    assert numpy.found == found
    assert "python3 course.py" in numpy.advice and "<2.5" in numpy.advice


def test_a_course_from_a_wheel_is_not_sent_to_a_script_that_it_has_not(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "_SCRIPT", tmp_path / "course.py")
    monkeypatch.setattr(doctor, "why_no_gpu", lambda: "NVVM is missing.")
    monkeypatch.setattr(doctor, "ask_nvidia_smi", lambda field: "NVIDIA Test")
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    found = by_subject()
    assert found["GPU"].advice.startswith("NVVM is missing.") and "[gpu]" in found["GPU"].advice
    assert "clone" in found["tests"].found
    assert "wheel" in doctor._package("no-such-package", ">=1").advice
    assert "[gpu]" in doctor._cupy().advice


def test_a_folder_of_figures_that_is_not_there_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv(records.VARIABLE, "off")
    assert (doctor._figures().found, doctor._figures().advice) == ("H200", None)
    monkeypatch.setenv(records.VARIABLE, str(tmp_path / "nowhere"))
    assert "nowhere, where no records of a GPU lie. Correct the path" in doctor._figures().advice


def test_advice_is_printed_below_what_it_is_about(capsys):
    doctor.show([doctor.Finding("a", "fine"), doctor.Finding("b", "bad", "mend it")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["✓", "a", "fine"]
    assert lines[1].split() == ["!", "b", "bad"]
    assert lines[2].split() == ["→", "mend", "it"]
