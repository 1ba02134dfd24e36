"""What documents 002, 003 and 004 say about indices and accesses, formula by formula, each with its place.

Sizes are called as in the course (BM, BN, BK, TM, TN, WM, WN); the documents' own names stand in the place.
Divisions are those of C++: whole numbers, rounded down. Rows and columns count from 0. Every formula is held
against the emulator's counts or its trace by tests/model/test_formulas.py.
"""

from gemm_course.model.formulas import document_002, document_003, document_004
from gemm_course.model.formulas.registry import FORMULAS, Formula

__all__ = ["FORMULAS", "Formula", "document_002", "document_003", "document_004"]
