"""A plugin for mypy that gives ``df.dp`` of pandas and Polars a type: write ``plugins = dpframe.mypy`` in its settings.

Type checkers do not see accessors that a library registers when it is imported. The stubs of pandas treat ``df.dp`` as
a column, and those of Polars as an error. With the plugin, it has the verbs of private frames and of results, since no
type distinguishes them, and answers are frames of the same library. Pyright has no plugins: there, write
``dpf.of(df)`` and ``dpf.released(result)``, which are typed for every checker.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.nodes import MDEF, Import, ImportFrom, MypyFile, SymbolTableNode, TypeInfo, Var
from mypy.plugin import AttributeContext, ClassDefContext, Plugin
from mypy.types import AnyType, Instance, Type, TypeOfAny

PANDAS = "pandas.core.frame.DataFrame"
POLARS = "polars.dataframe.frame.DataFrame"
LAZY = "polars.lazyframe.frame.LazyFrame"
ANSWERS = {PANDAS: PANDAS, POLARS: POLARS, LAZY: POLARS}  # the frame type of answers, by that of ``df``
ENTRY = "dpframe.accessor.entry"
LIBRARIES = ("pandas", "polars")
PRIORITY = 10  # the priority of a module that another needs for its types
ACCESSOR = "dp"


class FramePlugin(Plugin):
    """The plugin, which types ``.dp``."""

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        """Return a hook for the type of ``.dp`` of a frame."""
        frame, _, name = fullname.rpartition(".")
        if name != ACCESSOR or frame not in ANSWERS:
            return None
        return lambda context: _accessor(context, ANSWERS[frame])

    def get_customize_class_mro_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """Return a hook that adds ``.dp`` to classes of frames whose stubs allow no unknown attributes."""
        return _named if fullname in (POLARS, LAZY) else None

    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        """Return the module with the types, which each user's file with frames needs."""
        if "site-packages" in file.path or file.is_stub or file.fullname.partition(".")[0] == "dpframe":
            return []
        return [(PRIORITY, ENTRY, -1)] if any(map(_of_frames, file.imports)) else []


def _of_frames(line: object) -> bool:
    """Return whether a line imports a library of frames or dpframe."""
    names = [name for name, _ in line.ids] if isinstance(line, Import) else []
    names += [line.id] if isinstance(line, ImportFrom) else []
    return any(name.partition(".")[0] in (*LIBRARIES, "dpframe") for name in names)


def _accessor(context: AttributeContext, answers: str) -> Type:
    """Return the type of ``.dp`` of a frame, or mypy's default if dpframe is not part of the program."""
    accessor, frame = _class(context, f"{ENTRY}.Accessor"), _class(context, answers)
    if accessor is None or frame is None:
        return context.default_attr_type
    return Instance(accessor, [Instance(frame, [])])


def _class(context: AttributeContext, fullname: str) -> TypeInfo | None:
    """Return a class of the program by its name, or None if it is not part of the program."""
    module, _, name = fullname.rpartition(".")
    file = getattr(context.api, "modules", {}).get(module)
    found = file.names.get(name) if file is not None else None
    return found.node if found is not None and isinstance(found.node, TypeInfo) else None


def _named(context: ClassDefContext) -> None:
    """Add ``.dp`` of any type to a class; the other hook sets its type."""
    info = context.cls.info
    if ACCESSOR in info.names:
        return
    variable = Var(ACCESSOR, AnyType(TypeOfAny.special_form))
    variable.info = info
    variable._fullname = f"{info.fullname}.{ACCESSOR}"
    info.names[ACCESSOR] = SymbolTableNode(MDEF, variable, plugin_generated=True)


def plugin(version: str) -> type[Plugin]:
    """Return the plugin for any version of mypy, which calls this when it reads its settings."""
    return FramePlugin
