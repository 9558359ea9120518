"""``.dp`` of a frame that was marked as public: nothing is left to protect or to charge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpframe.accessor.released_frame import OF_RESULTS, VERBS
from dpframe.errors import AlreadyReleased, NoProvenance


class PublicFrame:
    """``.dp`` of a public frame: it refuses every verb, and has no record to show."""

    if not TYPE_CHECKING:  # which must see a mistyped name

        def __getattr__(self, name: str) -> Any:
            if name in VERBS:
                raise AlreadyReleased(
                    f"this frame is public (dpf.public): use it directly, without .dp.{name}. "
                    "If it holds private rows, make it anew."
                )
            if name in OF_RESULTS:
                raise NoProvenance(
                    f"this frame is public (dpf.public), and no release covers it, so .dp has no {name}. "
                    "Draw it or write it as any other frame."
                )
            raise AttributeError(f".dp of a public frame has no {name!r}")

    def __repr__(self) -> str:
        return "<.dp of a public frame, which needs no protection>"
