"""``df.dp``: a call becomes a Query. No state, no logic; the verbs are written once, for releases and previews."""

from dpframe.accessor.entry import accessor, of
from dpframe.accessor.private_frame import Asker
from dpframe.accessor.released_frame import Released

__all__ = ["Asker", "Released", "accessor", "of"]
