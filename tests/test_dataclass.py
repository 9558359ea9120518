"""Classes that are made whole when they are first used differ in nothing from those of `dataclasses`."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import threading

import pytest

from dpframe import _dataclass
from dpframe._dataclass import StandIn, dataclass


def whole(cls):
    return not any(isinstance(kept, StandIn) for kept in vars(cls).values())


def two():
    """The same class by either way; the first is not whole yet."""

    def defined(decorator):
        @decorator(frozen=True)
        class Base:
            """A base."""

            x: int
            y: str = "y"

        @decorator(frozen=True)
        class Point(Base):
            """A point."""

            z: tuple[int, ...] = ()
            _: dataclasses.KW_ONLY
            w: int = 3

            def __post_init__(self):
                if self.x < 0:
                    raise ValueError("below 0")

        return Point

    return defined(dataclass), defined(dataclasses.dataclass)


def outcome(call):
    try:
        return call()
    except Exception as refusal:
        return type(refusal), str(refusal)


LOOKS = {
    "repr": lambda cls: repr(cls(1)).split(".")[-1],
    "init": lambda cls: vars(cls(1, "b", (2,), w=4)),
    "refusal": lambda cls: outcome(lambda: cls(-1)),
    "too few": lambda cls: outcome(cls)[0],
    "equal": lambda cls: (cls(1) == cls(1, z=(4,)), cls(1) == cls(2), cls(1) != cls(1), cls(1) == 1),
    "hash": lambda cls: (hash(cls(1)) == hash(cls(1, z=(1,))), len({cls(1), cls(1), cls(2)})),
    "frozen": lambda cls: (outcome(lambda: setattr(cls(1), "x", 2)), outcome(lambda: delattr(cls(1), "x"))),
    "fields": lambda cls: [(field.name, field.kw_only) for field in dataclasses.fields(cls)],
    "is": dataclasses.is_dataclass,
    "replaced": lambda cls: vars(dataclasses.replace(cls(1), x=5)),
    "as a dictionary": lambda cls: dataclasses.asdict(cls(1)),
    "signature": lambda cls: str(inspect.signature(cls)),
    "matched": lambda cls: cls.__match_args__,
    "members": lambda cls: {name for name, _ in inspect.getmembers(cls)},
    "base": lambda cls: repr(cls.__mro__[1](1)).split(".")[-1],
    "derived": lambda cls: vars(type("Derived", (cls,), {})(1)),
    "derived by dataclasses": lambda cls: vars(dataclasses.dataclass(frozen=True)(type("Derived", (cls,), {}))(1)),
    "copied": lambda cls: vars(copy.replace(cls(1), x=2)) if sys.version_info >= (3, 13) else vars(copy.copy(cls(1))),
    "without init": lambda cls: outcome(lambda: setattr(cls.__new__(cls), "x", 2)),
    "defaults": lambda cls: (cls.y, cls.w),
    "written": lambda cls: cls.__init__.__qualname__,
}


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_differs_whatever_is_asked_first(look):
    later, now = two()
    assert not whole(later)
    assert LOOKS[look](later) == LOOKS[look](now)
    for other in LOOKS.values():
        assert other(later) == other(now)
    assert whole(later)


def test_classes_keep_what_they_define():
    @dataclass(frozen=True)
    class Own:  # noqa: PLW1641  # its hash is written
        """Compared by itself."""

        x: int

        def __eq__(self, other):
            return True

        def __repr__(self):
            return "own"

    @dataclass(frozen=True, eq=False)
    class ByName:
        """Compared as objects are."""

        x: int

    assert isinstance(vars(Own)["__hash__"], StandIn)
    assert (Own(1) == 2, repr(Own(1)), hash(Own(1)) == hash(Own(1))) == (True, "own", True)
    assert ByName(1) != ByName(1)
    assert ByName.__hash__ is object.__hash__


def test_fields_with_factories_are_whole_at_once():
    @dataclass(frozen=True)
    class Held:
        """Has a list of its own, and a default that is written as a field."""

        x: int = dataclasses.field(default=3, repr=False)
        z: list[int] = dataclasses.field(default_factory=list)

    assert whole(Held)
    assert (Held.x, Held().z, repr(Held())) == (3, [], f"{Held.__qualname__}(z=[])")


def test_an_instance_may_come_before_its_class_is_whole():
    """A copy that another process sends does not call the class: what it is asked first makes the class whole."""
    code = (
        "import pickle, sys, dpframe; one = pickle.loads(bytes.fromhex(sys.argv[1])); "
        "other = pickle.loads(pickle.dumps(one)); "
        "print(one == other, hash(one) == hash(other), repr(one))"
    )
    import dpframe

    sent = pickle.dumps(dpframe.count())
    found = subprocess.run([sys.executable, "-c", code, sent.hex()], capture_output=True, text=True, check=True)
    assert found.stdout == f"True True {dpframe.count()!r}\n"


def test_threads_make_a_class_whole_once(monkeypatch):
    made, real = [], dataclasses.dataclass  # copies of classes
    monkeypatch.setattr(
        _dataclass.dataclasses, "dataclass", lambda **options: lambda cls: made.append(cls) or real(**options)(cls)
    )
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            later = two()[0]
            made.clear()
            found, start = [], threading.Barrier(4)

            def use(later=later, found=found, start=start):
                start.wait()
                found.append(outcome(lambda: vars(later(1))))

            threads = [threading.Thread(target=use) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert found == [{"x": 1, "y": "y", "z": (), "w": 3}] * 4
            assert [cls.__name__ for cls in made] == ["Point", "Base"]
    finally:
        sys.setswitchinterval(interval)
