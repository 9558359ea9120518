"""The seeded privacy bugs: the symbol, the change, and the tests that must catch each of them; one file per topic."""

from __future__ import annotations

from assurance.bugs.audits import AUDITS
from assurance.bugs.before import BEFORE
from assurance.bugs.blocks import BLOCKS
from assurance.bugs.calibration import CALIBRATION
from assurance.bugs.changes import CHANGES
from assurance.bugs.charges import CHARGES
from assurance.bugs.checks import CHECKS
from assurance.bugs.contracts import CONTRACTS
from assurance.bugs.derived import DERIVED
from assurance.bugs.engines import ENGINES
from assurance.bugs.entries import ENTRIES
from assurance.bugs.exact import EXACT
from assurance.bugs.grids import GRIDS
from assurance.bugs.identity import IDENTITY
from assurance.bugs.jobs import JOBS
from assurance.bugs.kernels import KERNELS
from assurance.bugs.keys import KEYS
from assurance.bugs.ledger import LEDGER
from assurance.bugs.local import LOCAL
from assurance.bugs.locks import LOCKS
from assurance.bugs.marginals import MARGINALS
from assurance.bugs.noise import NOISE
from assurance.bugs.old_faults import OLD_FAULTS
from assurance.bugs.readings import READINGS
from assurance.bugs.reports import REPORTS
from assurance.bugs.results import RESULTS
from assurance.bugs.rows import ROWS
from assurance.bugs.seeding import Mutant
from assurance.bugs.sensitivity import SENSITIVITY
from assurance.bugs.stated import STATED
from assurance.bugs.statistics import STATISTICS
from assurance.bugs.streams import STREAMS
from assurance.bugs.suggestions import SUGGESTIONS
from assurance.bugs.units import UNITS
from assurance.bugs.witness import WITNESSES

MUTANTS: tuple[Mutant, ...] = (
    *NOISE,
    *CALIBRATION,
    *SENSITIVITY,
    *ROWS,
    *UNITS,
    *RESULTS,
    *LEDGER,
    *EXACT,
    *BEFORE,
    *ENTRIES,
    *IDENTITY,
    *STATED,
    *LOCKS,
    *STATISTICS,
    *CONTRACTS,
    *LOCAL,
    *ENGINES,
    *KERNELS,
    *BLOCKS,
    *GRIDS,
    *KEYS,
    *JOBS,
    *MARGINALS,
    *STREAMS,
    *REPORTS,
    *CHARGES,
    *CHANGES,
    *CHECKS,
    *WITNESSES,
    *DERIVED,
    *SUGGESTIONS,
    *AUDITS,
    *OLD_FAULTS,
    *READINGS,
)
