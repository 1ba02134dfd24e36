"""Finds in the source the reads of a variable that may come before its assignment.

On a GPU such a variable holds whatever was in a register. In lock-step one Python value serves all lanes, so
a lane that has set nothing would find another lane's value. For each variable with such a read, the
translated code has a second variable that tells which lanes have set it. :mod:`lockstep.machine.unset`
compares those lanes with the lanes that read.
"""

import ast

from lockstep.reading.analysis import assigned_names, folded, walk_here
from lockstep.reading.trees import children, walk

from .versions import is_copy, variable_of


class _Loop:
    def __init__(self):
        self.breaks, self.continues = [], []


class UnsetReads:
    """The reads of a function's variables that some path reaches without an assignment.

    ``reads``: ids of the name nodes of these reads. ``variables``: the variables that have such a read.
    ``lines``: the source lines in which each variable is set. ``above``: the first read, a node, of each
    variable that is read above all of these lines, as in a loop that sets it further down.

    ``known``: the variables that are set when the function begins. ``range_bounds`` returns the arguments
    of ``range(...)``, or None for any other expression.
    """

    def __init__(self, definition: ast.FunctionDef, known, range_bounds):
        self.range_bounds = range_bounds
        self.all = {variable_of(name) for name in assigned_names(definition.body)} - set(known)
        self.reads: set[int] = set()
        self.variables: set[str] = set()
        self.lines: dict[str, set] = {}
        self.above: dict[str, ast.AST] = {}
        self.loops: list[_Loop] = []
        self._block(definition.body, frozenset())

    def _set(self, target, now):
        """Return the variables that are set after an assignment to ``target``."""
        for node in walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                variable = variable_of(node.id)
                self.lines.setdefault(variable, set()).add(node.lineno)
                now = now | {variable}
        return now

    def _note(self, variable, node, at_once=True):
        """Note a read of a variable that may be unset. ``at_once``: whether no inner function delays it."""
        self.reads.add(id(node))
        self.variables.add(variable)
        if at_once and variable not in self.lines:
            self.above.setdefault(variable, node)

    def _read(self, node, now, hidden=None):
        """Note which reads in a node may find a variable unset.

        ``hidden``: the local names of the inner function around the node, if any.
        """
        if isinstance(node, ast.Name):
            variable = variable_of(node.id)
            stored = isinstance(node.ctx, ast.Store)
            if not stored and variable in self.all and variable not in now and variable not in (hidden or ()):
                self._note(variable, node, at_once=hidden is None)
            return
        if isinstance(node, (ast.Lambda, ast.FunctionDef)):
            hidden = (hidden or frozenset()) | {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
            hidden |= assigned_names(node.body) if isinstance(node, ast.FunctionDef) else set()
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            targets = [part for each in node.generators for part in ast.walk(each.target)]
            hidden = (hidden or frozenset()) | {part.id for part in targets if isinstance(part, ast.Name)}
        for child in children(node):
            self._read(child, now, hidden)
        if isinstance(node, ast.NamedExpr):
            self._set(node.target, now)

    # ---- statements; each returns the variables that are set after it, or None if no path gets past it ----

    def _block(self, statements, now):
        for statement in statements:
            if now is None:
                return None
            now = self._statement(statement, now)
        return now

    def _statement(self, node, now):
        if isinstance(node, ast.If):
            self._read(node.test, now)
            return _both(self._block(node.body, now), self._block(node.orelse, now))
        if isinstance(node, (ast.For, ast.While)):
            return self._loop(node, now)
        if isinstance(node, (ast.Break, ast.Continue)):
            left = self.loops[-1].breaks if isinstance(node, ast.Break) else self.loops[-1].continues
            left.append(now)
            return None
        if is_copy(node):  # A copy only gives a variable another type.
            return now
        self._read(node, now)
        if isinstance(node, (ast.Return, ast.Raise)):
            return None
        return self._assignment(node, now)

    def _assignment(self, node, now):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            variable = variable_of(node.target.id)
            if variable in self.all and variable not in now:
                self._note(variable, node.target)
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return now
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            now = now if target is None else self._set(target, now)
        return now

    def _loop(self, node, now):
        self.loops.append(_Loop())
        if isinstance(node, ast.For):
            self._read(node.iter, now)
            first = self._set(node.target, now)
            endless, once = False, self._runs(node.iter)
        else:
            self._read(node.test, now)
            first = now
            endless, once = isinstance(node.test, ast.Constant) and bool(node.test.value), False
        end = self._block(node.body, first)
        loop = self.loops.pop()
        if endless:
            after = None
        else:
            after = _both(end, *loop.continues) if once else now
            after = self._block(node.orelse, after) if after is not None else None
        return _both(after, *loop.breaks)

    def _runs(self, values) -> bool:
        """Tell whether every thread surely runs the body of a ``for`` over these values."""
        if isinstance(values, (ast.Tuple, ast.List)):
            return bool(values.elts) and not any(isinstance(part, ast.Starred) for part in values.elts)
        bounds = list(map(folded, self.range_bounds(values) or ()))
        if not 1 <= len(bounds) <= 3 or any(type(bound) is not int for bound in bounds) or bounds[2:] == [0]:
            return False
        return bool(range(*bounds))


def _both(*ends):
    """Return the variables that are set at the end of each of several paths."""
    ends = [end for end in ends if end is not None]
    return frozenset.intersection(*ends) if ends else None


def set_to_none(definition) -> set[str]:
    """Return the variables to which a function assigns None."""
    found = set()
    for statement in definition.body:
        for node in walk_here(statement):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Constant)
                and node.value.value is None
            ):
                found |= {variable_of(target.id) for target in node.targets if isinstance(target, ast.Name)}
    return found
