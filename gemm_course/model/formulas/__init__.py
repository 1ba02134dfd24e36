"""Holds the formulas for indices and accesses in documents 002, 003 and 004, each with its place.

Sizes have the course's names (BM, BN, BK, TM, TN, WM, WN), and the place gives the document's own names.
Divisions are as in C++: whole numbers, rounded down. Rows and columns count from 0.
tests/model/test_formulas.py compares every formula with the emulator's counts or its trace.
"""

from gemm_course.model.formulas import document_002, document_003, document_004
from gemm_course.model.formulas.registry import FORMULAS, Formula

__all__ = ["FORMULAS", "Formula", "document_002", "document_003", "document_004"]
