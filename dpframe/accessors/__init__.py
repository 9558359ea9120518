"""``df.dp``: a call becomes a Query. No state, no logic; the verbs are written once, for releases and previews."""

from dpframe.accessors.asker import Asker
from dpframe.accessors.entry import accessor, of
from dpframe.accessors.released import Released

__all__ = ["Asker", "Released", "accessor", "of"]
