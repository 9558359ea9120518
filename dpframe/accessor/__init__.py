"""``df.dp``: each verb makes a `Call` (planning/call.py) and passes it to a release or a preview."""

from dpframe.accessor.entry import accessor, of, released
from dpframe.accessor.joined import concat
from dpframe.accessor.private_frame import PrivateFrame
from dpframe.accessor.released_frame import ReleasedFrame

__all__ = ["PrivateFrame", "ReleasedFrame", "accessor", "concat", "of", "released"]
