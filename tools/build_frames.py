"""Store the pictures of the notebooks' explorers, which the browser shows without a kernel (for developers).

    python tools/build_frames.py                 for all calls in notebooks/source
    python tools/build_frames.py banks walk      for calls to these functions

Every call such as ``see.banks()`` has a file beside the JupyterLab extension, and an entry in the index
there; `gemm_course.widgets._frames` says what they hold. After a change to an explorer or to what it draws,
build its frames again and then the notebooks.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from gemm_course import records
from gemm_course import widgets as see
from gemm_course.widgets._calls import Call, call_of
from gemm_course.widgets._frames import FRAMES, INDEX, packed, script, spec
from gemm_course.widgets._lab_output import described

SOURCES = Path(__file__).resolve().parent.parent / "notebooks" / "source"


def calls(folder: Path = SOURCES) -> list[Call]:
    """The calls of explorers in the notebooks' sources whose arguments are literals, each once."""
    found = (call for path in sorted(folder.rglob("*.py")) for call in _calls_in(path.read_text("utf-8")))
    return list(dict.fromkeys(found))


def _calls_in(source: str) -> Iterator[Call]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="see"), attr=name)) if name in see.__all__:
                if call := _call(getattr(see, name), node):
                    yield call


def _call(function, node: ast.Call) -> Call | None:
    """The call; None if it shows no explorer or if its arguments are known only when a notebook runs."""
    make = getattr(function, "makes_explorer", None)
    if make is None or hasattr(function, "without_frames"):
        return None
    try:
        args = tuple(ast.literal_eval(each) for each in node.args)
        kwargs = {each.arg: ast.literal_eval(each.value) for each in node.keywords}
    except ValueError:
        return None
    call = call_of(make, args, kwargs)
    return call if call and hasattr(make(*args, **kwargs), "controls") else None


def build(call: Call, folder: Path = FRAMES) -> dict:
    """Write the frames of a call, and return its entry in the index."""
    explorer = call.explorer()
    states = {explorer.controls.places(state): state for state in explorer.states_to_store()}
    pictures = {place: explorer.picture(state) for place, state in sorted(states.items())}
    entry = spec(described(explorer.controls), pictures.values())
    (folder / f"{call.slug}.js").write_text(script(call.slug, entry["version"], packed(pictures)), "utf-8")
    return entry


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="functions, such as banks; all if left out")
    chosen = parser.parse_args().names
    os.environ[records.VARIABLE] = "off"  # leave out a learner's GPUs
    FRAMES.mkdir(exist_ok=True)
    index = FRAMES / INDEX
    known = json.loads(index.read_text("utf-8")) if index.exists() else {}
    wanted = {call.slug: call for call in calls()}
    for path in FRAMES.glob("*.js"):
        if path.stem not in wanted:
            path.unlink()
    for slug, call in wanted.items():
        if not chosen or call.name in chosen or slug not in known or not (FRAMES / f"{slug}.js").exists():
            known[slug] = build(call)
            size = (FRAMES / f"{slug}.js").stat().st_size
            print(f"{size / 1024:7.1f} KB  {slug}", flush=True)
    entries = {slug: known[slug] for slug in sorted(wanted)}
    lines = (
        f"{json.dumps(slug)}: {json.dumps(entry, ensure_ascii=False)}" for slug, entry in entries.items()
    )
    index.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
