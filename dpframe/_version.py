"""The version, which the package, its provenance and its command line read from here."""

from __future__ import annotations

VERSION = "0.3.0"
