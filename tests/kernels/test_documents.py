"""The kernels of the five documents are in the course, and a notebook tells of each by its document."""

import re
from pathlib import Path

import pytest

from gemm_course.kernels import LADDER
from gemm_course.kernels.variants import called

SOURCES = sorted((Path(__file__).parents[2] / "notebooks" / "source").rglob("*.py"))
FROM_DOCUMENTS = [
    *(stage for stage in LADDER if stage.document != "beyond the documents"),
    called("kernel5_draft"),
]


def test_all_kernels_of_the_five_documents_are_there():
    named = {stage.document for stage in FROM_DOCUMENTS}
    assert named >= {"000: Kernel 5", "001: Kernel 5, draft", "002: tile_matrix_multiply", "003"}
    assert named >= {f"004: v0{number}" for number in range(8)}


@pytest.mark.parametrize("stage", FROM_DOCUMENTS, ids=lambda stage: stage.name)
def test_a_notebook_tells_of_the_kernel_and_names_its_document(stage):
    document = re.compile(rf"[Dd]ocuments? (00\d (and|or) )?{stage.document[:3]}")
    texts = [path.read_text(encoding="utf-8") for path in SOURCES]
    assert any(document.search(text) and re.search(rf"\b{stage.name}\b", text) for text in texts)
