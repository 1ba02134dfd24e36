"""What tests of several pictures of profiles need, and a screen for explorers."""

import pytest

from gemm_course.kernels import LADDER, tiles_text
from gemm_course.profiles import NoProfile
from gemm_course.widgets import _profiled
from tests.widgets.made_up_profiles import SAMPLES, profile


class Seen:
    """What was displayed, in order; stands in for IPython's display."""

    def __init__(self):
        self.shown, self.updates = [], []

    def __call__(self, *things, **_):
        self.shown.extend(things)
        return self

    def update(self, bundle, raw):
        self.updates.append(bundle)

    @property
    def bundles(self):
        """The outputs, as dicts from MIME types."""
        return [thing for thing in self.shown if isinstance(thing, dict)]


@pytest.fixture
def seen(monkeypatch):
    screen = Seen()
    for module in ("_lab_output", "_widget_output", "_canvas", "_quiz"):
        monkeypatch.setattr(f"gemm_course.widgets.{module}.display", screen)
    return screen


@pytest.fixture
def shelf(monkeypatch):
    """Profiles that `recorded` finds, by name and tiles; all else it refuses."""
    kept = {}

    def recorded(stage, tiles=None, size=4096, gpu="h200"):
        name = getattr(stage, "name", stage)
        key = name, tiles_text(LADDER[name].complete(tiles)) if name in LADDER else "", size
        if key not in kept:
            raise NoProfile(f"no profile was recorded of {key}.")
        return kept[key]

    monkeypatch.setattr(_profiled, "recorded", recorded)

    def put(name, samples=SAMPLES, size=4096, tiles=None, **measured):
        text = tiles_text(LADDER[name].complete(tiles))
        kept[name, text, size] = profile(name, text, samples, m=size, n=size, k=size, **measured)

    return put
