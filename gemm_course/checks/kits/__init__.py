"""Kernels and parts of kernels that the notebooks hand out: on trial, to be repaired, or ready to be used."""

from .document_v05 import document_v05
from .fetch_frame import around
from .spilling_strip import make_strip
from .suspects import SUSPECTS, document_002
from .warp_parts import thread_tile_parts

__all__ = ["SUSPECTS", "around", "document_002", "document_v05", "make_strip", "thread_tile_parts"]
