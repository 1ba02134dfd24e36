"""Holds the kernels that notebooks hand out: to be judged, to be repaired, or ready to be used in parts."""

from .ahead_parts import ahead_parts
from .both_forms import make_copies
from .consecutive_fetch import make_fetch
from .document_v05 import document_v05
from .fetch_frame import around
from .rings_on_trial import RINGS
from .spilling_strip import make_strip
from .staying_blocks import (
    clear,
    finish,
    give_back,
    multiply,
    order,
    queue,
    roles_on_trial,
    staying_blocks,
    store,
)
from .suspects import SUSPECTS, document_002
from .swizzled_tiles import fetch_swizzled, place, store_accumulators
from .two_roles import (
    given_consumer,
    given_producer,
    late_consumer,
    later_consumer,
    patient_consumer,
    two_roles,
)
from .warp_parts import thread_tile_parts
from .wmma_parts import wmma_parts

__all__ = [
    "RINGS",
    "SUSPECTS",
    "ahead_parts",
    "around",
    "clear",
    "document_002",
    "document_v05",
    "fetch_swizzled",
    "finish",
    "give_back",
    "given_consumer",
    "given_producer",
    "late_consumer",
    "later_consumer",
    "make_copies",
    "make_fetch",
    "make_strip",
    "multiply",
    "order",
    "patient_consumer",
    "place",
    "queue",
    "roles_on_trial",
    "staying_blocks",
    "store",
    "store_accumulators",
    "thread_tile_parts",
    "two_roles",
    "wmma_parts",
]
