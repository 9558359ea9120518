"""``df.dp``: each verb makes a `Call` (planning/call.py) and hands it to the release or the preview of it."""

from dpframe.accessor.entry import accessor, of, released
from dpframe.accessor.joined import concat
from dpframe.accessor.private_frame import PrivateFrame
from dpframe.accessor.released_frame import ReleasedFrame

__all__ = ["PrivateFrame", "ReleasedFrame", "accessor", "concat", "of", "released"]
