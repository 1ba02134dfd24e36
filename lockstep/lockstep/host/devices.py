"""Shows programs the emulated GPU: its attributes, its context, and a list of GPUs with one entry."""

import contextlib
from collections import namedtuple
from collections.abc import Iterator

from lockstep.limits import (
    CONSTANT_BYTES,
    MAX_BLOCK,
    MAX_GRID,
    MAX_STATIC_SHARED_BYTES,
    MAX_THREADS,
    Profile,
)

from . import streams
from .errors import missing, refusing
from .state import current

MemoryInfo = namedtuple("MemoryInfo", "free,total")
WARP = 32
# The emulated GPU has the version of CUDA, of the driver and of the toolkit, that the H200 had whose counts
# are on record.
CUDA_VERSION = (13, 0)
# These methods of numba.cuda's context are refused when they are called.
OF_CONTEXTS = (
    *("can_access_peer", "enable_peer_access", "create_module_image", "create_module_ptx", "unload_module"),
    *("get_active_blocks_per_multiprocessor", "get_max_potential_block_size", "memalloc", "memallocmanaged"),
    *("memhostalloc", "mempin", "get_ipc_handle", "open_ipc_handle"),
)


class Device:
    """The GPU of a session. Its attributes have the driver's names, such as MAX_THREADS_PER_BLOCK."""

    id = 0
    uuid = "GPU-00000000-0000-0000-0000-000000000000"

    def __init__(self, profile: Profile):
        self.name = f"{profile.name} (emulated)"
        self.compute_capability = profile.compute_capability
        self.supports_float16 = True
        self.supports_bfloat16 = self.compute_capability >= (8, 0)
        self.supports_fp8 = self.compute_capability >= (8, 9)
        vars(self).update(_attributes(profile))

    def __getattr__(self, name: str):
        raise AttributeError(f"the emulated GPU has no attribute {name}")

    def __repr__(self):
        return f"<CUDA device 0 '{self.name}'>"

    def get_device_identity(self) -> dict:
        return dict.fromkeys(("pci_domain_id", "pci_bus_id", "pci_device_id"), 0)

    def get_primary_context(self) -> "Context":
        return current().context

    def release_primary_context(self) -> None:
        """Do nothing, because the context holds nothing to release."""

    def reset(self) -> None:
        """Do nothing, because the device holds nothing to reset."""


def _attributes(profile: Profile) -> dict[str, int]:
    """Return the driver's attributes of a device, with sizes in bytes and the clock rate in kHz."""
    limits, (major, minor) = profile.limits, profile.compute_capability
    axes = {f"MAX_BLOCK_DIM_{axis}": size for axis, size in zip("XYZ", MAX_BLOCK)}
    axes |= {f"MAX_GRID_DIM_{axis}": size for axis, size in zip("XYZ", MAX_GRID)}
    able = ("UNIFIED_ADDRESSING", "MANAGED_MEMORY", "CONCURRENT_MANAGED_ACCESS", "CONCURRENT_KERNELS")
    able += ("COOPERATIVE_LAUNCH", "CAN_MAP_HOST_MEMORY", "GPU_OVERLAP", "ASYNC_ENGINE_COUNT")
    not_so = ("INTEGRATED", "KERNEL_EXEC_TIMEOUT", "TCC_DRIVER", "COMPUTE_MODE")
    not_so += ("PCI_DOMAIN_ID", "PCI_BUS_ID", "PCI_DEVICE_ID")
    return {
        **axes,
        **dict.fromkeys(able, 1),
        **dict.fromkeys(not_so, 0),
        "COMPUTE_CAPABILITY_MAJOR": major,
        "COMPUTE_CAPABILITY_MINOR": minor,
        "WARP_SIZE": WARP,
        "MULTIPROCESSOR_COUNT": profile.multiprocessors,
        "CLOCK_RATE": profile.clock_mhz * 1000,
        "L2_CACHE_SIZE": profile.l2_bytes,
        "TOTAL_CONSTANT_MEMORY": CONSTANT_BYTES,
        "MAX_THREADS_PER_BLOCK": MAX_THREADS,
        "MAX_THREADS_PER_MULTIPROCESSOR": limits.threads,
        "MAX_THREADS_PER_MULTI_PROCESSOR": limits.threads,
        "MAX_BLOCKS_PER_MULTIPROCESSOR": limits.blocks,
        "MAX_REGISTERS_PER_BLOCK": limits.registers,
        "MAX_REGISTERS_PER_MULTIPROCESSOR": limits.registers,
        "MAX_SHARED_MEMORY_PER_BLOCK": MAX_STATIC_SHARED_BYTES,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": limits.shared_bytes_per_block,
        "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": limits.shared_bytes,
        "RESERVED_SHARED_MEMORY_PER_BLOCK": limits.reserved_shared_bytes,
        "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO": limits.fp32_lanes // limits.fp64_lanes,
    }


class Deallocations:
    """The memory that waits to be freed. There is none: memory is free once nothing refers to it."""

    def __init__(self) -> None:
        self._disabled = 0

    def __len__(self) -> int:
        return 0

    def clear(self) -> None:
        """Do nothing, because nothing is pending."""

    @contextlib.contextmanager
    def disable(self) -> Iterator[None]:
        self._disabled += 1
        try:
            yield
        finally:
            self._disabled -= 1

    @property
    def is_disabled(self) -> bool:
        return self._disabled > 0


class Context:
    """The object that numba.cuda calls the current context."""

    def __init__(self, device: Device):
        self.device, self.deallocations = device, Deallocations()

    def get_memory_info(self) -> MemoryInfo:
        """Return the free and the total memory in bytes."""
        heap = current().heap
        return MemoryInfo(heap.free, heap.capacity)

    create_stream = staticmethod(streams.stream)
    get_default_stream = staticmethod(streams.default_stream)
    get_legacy_default_stream = staticmethod(streams.legacy_default_stream)
    get_per_thread_default_stream = staticmethod(streams.per_thread_default_stream)
    create_external_stream = staticmethod(streams.external_stream)
    create_event = staticmethod(streams.event)

    def synchronize(self) -> None:
        """Do nothing, because no work is pending."""

    def reset(self) -> None:
        """Do nothing, because the context holds nothing to reset."""

    push = pop = prepare_for_use = reset

    def defer_cleanup(self) -> contextlib.AbstractContextManager[None]:
        return self.deallocations.disable()

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        sentence = f"the emulator does not support the context's {name}"
        if name in OF_CONTEXTS:
            return refusing(sentence)
        raise missing(sentence)


class Gpu:
    """The only entry of ``cuda.gpus``. It has the device's attributes, and ``with`` selects the device."""

    def __init__(self, device: Device):
        self._device = device

    def __getattr__(self, name: str):
        return getattr(self._device, name)

    def __enter__(self):
        return None

    def __exit__(self, *error):
        return None

    def __repr__(self):
        return "<Managed Device 0>"


class Gpus:
    """The list ``cuda.gpus``, which has one GPU."""

    @property
    def lst(self) -> list[Gpu]:
        return [Gpu(current().device)]

    @property
    def current(self) -> Gpu:
        return self[0]

    def __getitem__(self, number):
        return self.lst[number]

    def __iter__(self):
        return iter(self.lst)

    def __len__(self):
        return 1

    def __str__(self):
        return ", ".join(map(repr, self.lst))


gpus = Gpus()


def list_devices() -> Gpus:
    return gpus


def get_current_device() -> Device:
    return current().device


def current_context(devnum=None) -> Context:
    return gpus[devnum or 0].get_primary_context()


def select_device(device_id) -> Device:
    """Return the device. Raises IndexError for a number other than 0, because there is one GPU."""
    return current_context(device_id).device


def close() -> None:
    """Do nothing, because there is no context to close."""


def synchronize() -> None:
    """Do nothing, because no work is pending."""


def is_available() -> bool:
    return True


def is_supported_version() -> bool:
    return True


def get_version(asked: object = None) -> tuple[int, int]:
    """Return the version (major, minor) of CUDA, for the driver and for the runtime."""
    return CUDA_VERSION


def cuda_error() -> None:
    return None


def is_float16_supported() -> bool:
    return current().device.supports_float16


def is_bfloat16_supported() -> bool:
    return current().device.supports_bfloat16


def is_fp8_supported() -> bool:
    return current().device.supports_fp8


def detect() -> bool:
    """Print the GPU's name and compute capability, as numba.cuda does, and return True."""
    device = get_current_device()
    print("Found 1 CUDA devices")
    print(f"id 0    {device.name:>20} {'[SUPPORTED]':>40}")
    print(f"{'Compute Capability':>40}: {'.'.join(map(str, device.compute_capability))}")
    print("Summary:")
    print("\t1/1 devices are supported")
    return True


def defer_cleanup() -> contextlib.AbstractContextManager[None]:
    return current().context.defer_cleanup()


@contextlib.contextmanager
def profiling() -> Iterator[None]:
    yield


def profile_start() -> None:
    """Do nothing, because there is no profiler."""


def profile_stop() -> None:
    """Do nothing, because there is no profiler."""
