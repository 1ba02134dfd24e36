"""Packs the pictures of an explorer's states into one file of stored frames for the browser.

A file has the name of the call, such as ``coverage-subject_kernel5_draft.js``, and lies beside the
extension's script. ``tools/build_frames.py`` writes it. It is a script, because a page that was opened from
disk may load scripts and nothing else. Frames of one explorer have most of their SVG in common. So each is
split at every "<", a part that occurs again is kept once, and gzip shrinks the rest. A state's name is the
places of its options, joined by commas.

``index.json`` beside the files says for each call what its output needs at once: the controls, and the size
of the largest picture, so that nothing jumps while they move.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from gemm_course.figures.picture import Picture

EXTENSION = Path(__file__).parent.parent / "commands" / "jupyter" / "labextensions" / "gemm-course"
STATIC = EXTENSION / "static"
FRAMES = STATIC / "frames"
INDEX = "index.json"


def known(slug: str) -> dict[str, Any] | None:
    """Return the index's entry for a call, or None if it has no stored frames."""
    return _index().get(slug)


@cache
def _index() -> dict[str, Any]:
    path = FRAMES / INDEX
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def height(picture: Picture) -> float:
    """Return the height in CSS pixels of a picture that is shown at its full width."""
    _, _, wide, high = map(float, re.search(r'viewBox="([^"]+)"', picture.data)[1].split())
    return picture.width * high / wide


def spec(controls: list[dict[str, Any]], pictures: Iterable[Picture]) -> dict[str, Any]:
    """Return the index's entry for a call. ``version`` changes with the controls."""
    pictures = list(pictures)
    text = json.dumps(controls, ensure_ascii=False, sort_keys=True)
    return {
        "controls": controls,
        "width": max(picture.width for picture in pictures),
        "height": round(max(height(picture) for picture in pictures)),
        "version": hashlib.sha256(text.encode()).hexdigest()[:8],
    }


def packed(pictures: dict[tuple[int, ...], Picture]) -> str:
    """Pack pictures, given by the places of their states, into text for `unpacked` and the browser."""
    parts: dict[str, int] = {}
    frames = {
        ",".join(map(str, place)): [
            picture.alt,
            [parts.setdefault(part, len(parts)) for part in picture.data.split("<")],
        ]
        for place, picture in pictures.items()
    }
    text = json.dumps({"parts": list(parts), "frames": frames}, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def unpacked(text: str) -> dict[str, tuple[str, str]]:
    """Return the source and the alt text of each frame, by the places of its state."""
    content = json.loads(gzip.decompress(base64.b64decode(text)))
    return {
        place: ("<".join(content["parts"][part] for part in parts), alt)
        for place, (alt, parts) in content["frames"].items()
    }


def script(slug: str, version: str, text: str) -> str:
    """Return the text of the file that the browser loads."""
    return f"(window.gemmCourseFrames ??= {{}})[{json.dumps(slug)}] = {json.dumps([version, text])};\n"


def stored(slug: str, folder: Path = FRAMES) -> dict[str, tuple[str, str]]:
    """Return the frames of a call as `unpacked` does. Raise FileNotFoundError if it has none."""
    text = (folder / f"{slug}.js").read_text(encoding="utf-8")
    return unpacked(json.loads(text[text.index("] = ") + 4 : text.rindex(";")])[1])
