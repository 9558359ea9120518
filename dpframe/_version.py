"""The version, in one place: the package, its provenance and its command line read it here."""

from __future__ import annotations

VERSION = "0.3.0"
