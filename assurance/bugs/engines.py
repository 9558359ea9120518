"""Seeded bugs of the room "engines": rows that are read in pieces, and units that are put together again."""

from __future__ import annotations

from assurance.bugs.seeding import bug

KINDS = "test_unit_kinds.py"
ENGINES = (
    bug(
        "engines",
        "dense units added once more, row by row",
        "weights.bounded",
        "        sharing = np.concatenate([sharing, np.arange(code.size)[whole]])\n",
        "",
        KINDS,
    ),
    bug(
        "engines",
        "dense units weighed as if each row had its own cell",
        "_addressed",
        "Pairs(owners[there // cells], there % cells, size[there], sums)",
        "Pairs(owners[there // cells], there % cells, np.ones_like(there), sums)",
        KINDS,
    ),
    bug(
        "engines",
        "two dense units in one place",
        "_addressed",
        "place[owners] = np.arange(owners.size) * cells",
        "place[owners] = np.arange(owners.size) // 2 * cells",
        KINDS,
    ),
)
