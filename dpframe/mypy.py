"""A plugin for mypy, by which ``df.dp`` of pandas and Polars has a type: ``plugins = dpframe.mypy`` in its settings.

Type checkers do not see accessors that a library registers when it is imported. The stubs of pandas take ``df.dp`` for
a column; of Polars it is an error. With the plugin it offers the verbs of private frames and of results alike, since no
type tells one from the other, and answers are frames of the library that was asked. Pyright has no plugins: there write
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
ANSWERS = {PANDAS: PANDAS, POLARS: POLARS, LAZY: POLARS}  # the frame of the answers, by the frame that is asked
ENTRY = "dpframe.accessor.entry"
LIBRARIES = ("pandas", "polars")
PRIORITY = 10  # of a module that another needs for its types
ACCESSOR = "dp"


class FramePlugin(Plugin):
    """Types for ``.dp``."""

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        """The type of ``.dp``, where a frame is asked for it."""
        frame, _, name = fullname.rpartition(".")
        if name != ACCESSOR or frame not in ANSWERS:
            return None
        return lambda context: _accessor(context, ANSWERS[frame])

    def get_customize_class_mro_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """A name for ``.dp``, where a class of frames has none for attributes that it does not know."""
        return _named if fullname in (POLARS, LAZY) else None

    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        """The module with the types, which is needed wherever a user's file has frames."""
        if "site-packages" in file.path or file.is_stub or file.fullname.partition(".")[0] == "dpframe":
            return []
        return [(PRIORITY, ENTRY, -1)] if any(map(_of_frames, file.imports)) else []


def _of_frames(line: object) -> bool:
    """Tell whether a line imports a library of frames, or dpframe."""
    names = [name for name, _ in line.ids] if isinstance(line, Import) else []
    names += [line.id] if isinstance(line, ImportFrom) else []
    return any(name.partition(".")[0] in (*LIBRARIES, "dpframe") for name in names)


def _accessor(context: AttributeContext, answers: str) -> Type:
    """The type of ``.dp`` of a frame; what mypy knew before where dpframe is no part of the program."""
    accessor, frame = _class(context, f"{ENTRY}.Accessor"), _class(context, answers)
    if accessor is None or frame is None:
        return context.default_attr_type
    return Instance(accessor, [Instance(frame, [])])


def _class(context: AttributeContext, fullname: str) -> TypeInfo | None:
    """A class of the program, by its name; None where it is no part of it."""
    module, _, name = fullname.rpartition(".")
    file = getattr(context.api, "modules", {}).get(module)
    found = file.names.get(name) if file is not None else None
    return found.node if found is not None and isinstance(found.node, TypeInfo) else None


def _named(context: ClassDefContext) -> None:
    """Give a class the attribute, of any type: the other hook says which."""
    info = context.cls.info
    if ACCESSOR in info.names:
        return
    variable = Var(ACCESSOR, AnyType(TypeOfAny.special_form))
    variable.info = info
    variable._fullname = f"{info.fullname}.{ACCESSOR}"
    info.names[ACCESSOR] = SymbolTableNode(MDEF, variable, plugin_generated=True)


def plugin(version: str) -> type[Plugin]:
    """The plugin, whatever the version of mypy: what mypy asks for when it reads its settings."""
    return FramePlugin
