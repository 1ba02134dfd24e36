"""Makes a generator function of translated code, for units that wait for each other.

A unit that has to wait stops in the middle of its kernel, and others run. So each call that may wait returns
its result, or a generator that waits and then returns it. The code runs such a generator by ``yield from``.
What comes out of it is the unit that runs next (:mod:`lockstep.waiting.scheduler`).
"""

import ast
import copy

# The machine's methods that may return a generator to run.
_MAY_WAIT = ("call", "idle", "grid_barrier")


class _Suspendable(ast.NodeTransformer):
    """Makes calls that may wait run the generator that they return."""

    def __init__(self):
        self.count = 0

    def visit_Call(self, node):
        self.generic_visit(node)
        name = _method_of_machine(node)
        if name in _MAY_WAIT:
            return ast.copy_location(self._run_what_it_returns(node), node)
        if name is not None and any(map(_is_suspendable, node.args)):
            return ast.copy_location(ast.YieldFrom(_with_operands_that_wait(name, node)), node)
        return node

    def _run_what_it_returns(self, call):
        """Return ``(yield from returned) if _M.waits(returned := call) else returned``."""
        self.count += 1
        name = f"_w{self.count}"
        test = _call_of_machine("waits", ast.NamedExpr(ast.Name(name, ast.Store()), call))
        return ast.IfExp(test, ast.YieldFrom(ast.Name(name, ast.Load())), ast.Name(name, ast.Load()))


def _with_operands_that_wait(name, call):
    """Return a call that does the same where an operand, a lambda that the method calls, is a generator."""
    if name == "update":
        return _call_of_machine("suspendable_update", *call.args)
    return _call_of_machine("with_operands_that_wait", call.func, *call.args)


def _method_of_machine(call) -> str | None:
    function = call.func
    if isinstance(function, ast.Attribute) and getattr(function.value, "id", None) == "_M":
        return function.attr
    return None


def _call_of_machine(name, *arguments):
    return ast.Call(ast.Attribute(ast.Name("_M", ast.Load()), name, ast.Load()), list(arguments), [])


def _is_suspendable(argument) -> bool:
    """Tell whether an argument is a lambda that returns a generator."""
    return isinstance(argument, ast.Lambda) and any(isinstance(n, ast.YieldFrom) for n in ast.walk(argument))


def suspendable(tree: ast.Module) -> ast.Module:
    """Return the tree of a translated function, made a generator function."""
    tree = _Suspendable().visit(copy.deepcopy(tree))
    # Code in which nothing may wait has to be a generator as well.
    never = ast.If(ast.Constant(False), [ast.Expr(ast.Yield(None))], [])
    tree.body[0].body.insert(0, never)
    return ast.fix_missing_locations(tree)
