"""Puts a submission back into the form of its assignment: the learner's answers, and the course's own checks.

nbgrader finds cells by what their metadata say. A learner who splits a cell, pastes one, moves one, writes
into another one or takes the course's own notebook changes that, mostly without knowing. So the cells are
found here by their metadata, their ids or the check that they call. A notebook of the second edition has
other ids, which are known as well. Each answer gets the metadata of the assignment. The checks are the
assignment's own, and stand where the learner's stood, or below the answer.
"""

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass

from nbformat import NotebookNode
from nbformat.corpus.words import generate_corpus_id

from gemm_course.second_edition import cell_id

from .assignments import answer_and_question, check_at_the_end, is_listing

_ID = re.compile(r"[\w-]{1,64}", re.ASCII)
_CHECK = re.compile(r"graded\(check\.(\w+)\(")
_TYPES = ("code", "markdown", "raw")


def restored(submission: NotebookNode, assignment: NotebookNode) -> NotebookNode:
    """Return the submission in the assignment's form. Neither is changed.

    Every cell of the learner's stays, in the learner's order, but those that list the course's kernels.
    Outputs, tags and other metadata are dropped, because some of them make graders skip a cell. The
    assignment's cells before its first answer, such as the imports, come first if the learner has deleted,
    moved or changed them.
    """
    form = _Form(assignment)
    given = [form.read(_clean(cell)) for cell in submission.cells]
    places = {name: form.place_of_check(name, given) for name in form.answers}
    cells = [copy.deepcopy(cell) for cell in form.lost_beginnings(given)]
    for place, each in enumerate(given):
        cell = each.cell
        if each.name is not None and place == form.last_piece(each.name, given, places[each.name]):
            cell.metadata = copy.deepcopy(form.answers[each.name].metadata)
        if cell.cell_type != "code" and cell.source.strip() not in form.texts:
            # Links and scripts would work in the teacher's browser. Feedback leaves plain text out.
            cell.cell_type, cell.metadata.raw_mimetype = "raw", "text/plain"
        if (each.role != "check" or each.written) and cell.source.strip() not in form.listings:
            cells.append(cell)
        cells += [check for name, at in places.items() if at == place for check in form.checks[name]]
    cells += [check for name, at in places.items() if at is None for check in form.checks[name]]
    made = NotebookNode(cells=list(_with_ids(cells)), metadata=copy.deepcopy(assignment.metadata))
    made.nbformat, made.nbformat_minor = 4, 5
    return made


def grade_id(cell: NotebookNode) -> str | None:
    """Return the name that nbgrader knows a cell by, or None."""
    return _of_nbgrader(cell).get("grade_id")


def _of_nbgrader(cell: NotebookNode) -> dict:
    found = (cell.get("metadata") or {}).get("nbgrader")
    return found if isinstance(found, dict) else {}


@dataclass
class _Given:
    """A cell of the submission.

    role: "answer" or "check" of the answer ``name``, or "" for any other cell. written: whether the learner
    wrote something into it, besides a stub or a check.
    """

    cell: NotebookNode
    role: str = ""
    name: str | None = None
    written: bool = False


class _Form:
    """The answers of an assignment, and the check of each."""

    def __init__(self, assignment: NotebookNode):
        self.answers: dict[str, NotebookNode] = {}
        self.checks: dict[str, list[NotebookNode]] = {}
        self.beginnings: list[NotebookNode] = []
        # Feedback would hand these out: they list kernels that exercises ask for.
        self.listings = {cell.source.strip() for cell in assignment.cells if is_listing(cell)}
        self.texts = {cell.source.strip() for cell in assignment.cells if cell.cell_type == "markdown"}
        # `roles` maps the name or id of a cell, and the name of an exercise, to (role, name of the answer).
        self.roles: dict[str, tuple[str, str]] = {}
        name = ""
        for cell in assignment.cells:
            if _of_nbgrader(cell).get("solution"):
                name = grade_id(cell)
                self.answers[name], self.checks[name] = cell, []
                self.roles[name] = "answer", name
            elif _of_nbgrader(cell).get("grade") and name:
                self.checks[name].append(copy.deepcopy(cell))
                self.roles[grade_id(cell)] = "check", name
                for each in _CHECK.findall(cell.source):
                    self.roles[f"check.{each}"] = "check", name
                    if earlier := cell_id(each):
                        self.roles |= {earlier: ("answer", name), f"{earlier}-check": ("check", name)}
            elif not name and cell.cell_type == "code":
                self.beginnings.append(cell)

    def read(self, cell: NotebookNode) -> _Given:
        """Return what a cell is, without the check that it calls, and without metadata."""
        role, name = self._role(cell)
        cell.metadata = NotebookNode()
        if name is None:
            return _Given(cell)
        cell.cell_type = "code"
        cell.source = self._answer_in(cell.source, name)
        stub = role == "answer" and cell.source.strip() == self.answers[name].source.strip()
        return _Given(cell, role, name, bool(cell.source.strip()) and not stub)

    def _role(self, cell: NotebookNode) -> tuple[str, str | None]:
        for key in (grade_id(cell), cell.get("id")):
            if key in self.roles:
                return self.roles[key]
        for exercise in _CHECK.findall(cell.source):
            if f"check.{exercise}" in self.roles:
                return self.roles[f"check.{exercise}"]
        called = _called(cell.source)
        if called in self.roles:
            return "answer", self.roles[called][1]
        return "", None

    def _answer_in(self, source: str, name: str) -> str:
        """Return what a cell says besides its check, which its last line may call."""
        told = {line.strip() for check in self.checks[name] for line in check.source.splitlines()}
        if "graded(check." in source:
            kept = [line for line in source.splitlines() if line.strip() not in told or not line.strip()]
            source = "\n".join(line for line in kept if "graded(check." not in line).strip("\n")
        if _called(source) is None:
            return source
        return answer_and_question(source, check_at_the_end(source))[0]

    def place_of_check(self, name: str, given: list[_Given]) -> int | None:
        """Return the place of the cell after which an answer's check stands; None for the end.

        It is where the learner's own check was, if an answer is above it. Otherwise it is the answer.
        """
        own = [place for place, each in enumerate(given) if each.name == name]
        checks = [place for place in own if given[place].role == "check"]
        written = [place for place in own if given[place].written]
        for wanted in (written, [] if written else own):
            for check in reversed(checks):
                above = [place for place in own if place <= check and (given[place].written or not written)]
                if above and above[-1] in wanted and self._is_nearest(above[-1], check, own, given):
                    return check
        return max(written or own, default=None)

    @staticmethod
    def _is_nearest(piece: int, check: int, own: list[int], given: list[_Given]) -> bool:
        """Tell whether no other cell of the answer stands between one of its cells and a check."""
        return not any(piece < place < check and given[place].role == "answer" for place in own)

    def last_piece(self, name: str, given: list[_Given], check: int | None) -> int | None:
        """Return the place of the cell that nbgrader takes for the answer: the last one above its check."""
        own = [place for place, each in enumerate(given) if each.name == name and _stays(each)]
        own = [place for place in own if given[place].role == "answer"] or own
        above = [place for place in own if check is None or place <= check]
        return max(above or own, default=None)

    def lost_beginnings(self, given: list[_Given]) -> list[NotebookNode]:
        """Return the code cells above the first answer that the submission lacks above its first one."""
        first = next((place for place, each in enumerate(given) if each.name is not None), len(given))
        there = {each.cell.source.strip() for each in given[:first]}
        return [cell for cell in self.beginnings if cell.source.strip() not in there]


def _stays(given: _Given) -> bool:
    return given.role != "check" or given.written


def _called(source: str) -> str | None:
    """Return the check that the last line of a cell calls, such as ``check.where``, or None."""
    try:
        call = check_at_the_end(source)
    except (SyntaxError, ValueError):
        return None
    return call and call.partition("(")[0].strip()


def _clean(cell: NotebookNode) -> NotebookNode:
    """Return a cell of the submission as nbformat wants it, whatever wrote it, and without outputs."""
    kind = cell.get("cell_type") if cell.get("cell_type") in _TYPES else "raw"
    source = cell.get("source") or ""
    source = "".join(map(str, source)) if isinstance(source, list) else str(source)
    metadata = cell.get("metadata") if isinstance(cell.get("metadata"), dict) else {}
    return NotebookNode(id=cell.get("id"), cell_type=kind, source=source, metadata=copy.deepcopy(metadata))


def _with_ids(cells: list[NotebookNode]) -> Iterator[NotebookNode]:
    """Yield the cells, with a new id where one is missing, is none, or is another cell's."""
    known: set[str] = set()
    for cell in cells:
        found = cell.get("id")
        if not isinstance(found, str) or not _ID.fullmatch(found) or found in known:
            cell["id"] = found = generate_corpus_id()
        known.add(found)
        if cell.cell_type == "code":
            cell["outputs"], cell["execution_count"] = [], None
        yield cell
