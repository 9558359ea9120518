"""``df.dp``: a call becomes a Query. No state, no logic; the verbs are written once, for releases and previews."""

from dpframe.accessor.entry import accessor, listing, of, released
from dpframe.accessor.joined import concat
from dpframe.accessor.private_frame import PrivateFrame
from dpframe.accessor.released_frame import ReleasedFrame

__all__ = ["PrivateFrame", "ReleasedFrame", "accessor", "concat", "listing", "of", "released"]
