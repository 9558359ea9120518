"""Frozen dataclasses that are made whole when they are first used.

`dataclasses.dataclass` writes and compiles six methods for each class. An import of dpframe defines about two hundred
classes, of which a release uses a third, and making all of them whole took longer than everything else that the import
does. With the `dataclass` of this file a class has a stand-in in the place of each written method; whoever asks for any
of them, by making an instance, comparing two, or looking at the fields, has the class made whole first, by
`dataclasses.dataclass` itself. From then on nothing differs.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

WRITTEN = (
    "__repr__",
    "__eq__",
    "__hash__",
    "__match_args__",
    "__replace__",
    "__dataclass_fields__",
    "__dataclass_params__",
    "__init__",
)
REFUSING = ("__setattr__", "__delattr__")
OF_THE_CLASS = ("__dict__", "__weakref__")  # which a copy gets anew

_lock = threading.RLock()


class StandIn:
    """An attribute of a class that is not whole: who asks for it gets that of the whole class."""

    def __init__(self, cls: type, name: str, options: dict[str, bool]) -> None:
        self.cls, self.name, self.options = cls, name, options

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        with _lock:
            if vars(self.cls).get(self.name) is self:
                _make_whole(self.cls, self.options)
        return getattr(owner if instance is None else instance, self.name)


def _make_whole(cls: type, options: dict[str, bool]) -> None:
    """Let `dataclasses` write the methods of a copy, and put them into the places of the stand-ins one by one.

    None of these methods knows its class, and another thread meets a stand-in, which waits, or what takes its place.
    """
    kept = {
        name: one
        for name, one in vars(cls).items()
        if not isinstance(one, StandIn) and name not in (*OF_THE_CLASS, *REFUSING)
    }
    kept["__qualname__"] = cls.__qualname__
    written = vars(dataclasses.dataclass(**options)(type(cls)(cls.__name__, cls.__bases__, kept)))
    for name in WRITTEN:
        if isinstance(vars(cls).get(name), StandIn):
            if name in written:
                setattr(cls, name, written[name])
            else:
                delattr(cls, name)


def _frozen(cls: Any) -> tuple[Callable[[Any, str, Any], None], Callable[[Any, str], None]]:
    """The two methods that know their class, as `dataclasses` writes them."""

    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


def _stands_in(cls: type, name: str) -> bool:
    """A class keeps what it defines itself; Python has written None beside an `__eq__` without a hash."""
    return name not in vars(cls) or (name == "__hash__" and vars(cls)[name] is None)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool, **options: bool) -> Callable[[type], type]:
        """`dataclasses.dataclass` with the same options, when the class is first used.

        Only for frozen classes without `slots`. A class with a `dataclasses.field` is made whole at once, since its
        attributes are to be the defaults.
        """
        options = {"frozen": frozen, **options}

        def later(cls: type) -> type:
            if any(isinstance(kept, dataclasses.Field) for kept in vars(cls).values()):
                return dataclasses.dataclass(**options)(cls)
            for name, method in zip(REFUSING, _frozen(cls), strict=True):
                method.__qualname__ = f"{cls.__qualname__}.{name}"
                setattr(cls, name, method)
            for name in WRITTEN:
                if _stands_in(cls, name):
                    setattr(cls, name, StandIn(cls, name, options))
            return cls

        return later
