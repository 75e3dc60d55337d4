"""Sizes as users type them."""

from __future__ import annotations

import re

from tripos.errors import UsageError

_POWERS = {"K": 10, "M": 20, "G": 30}
_MOST = 1 << 50
"""Beyond any machine, and within what systems and DuckDB take."""


def bytes_of(text: str | None, flag: str) -> int:
    """A size such as 512MB or 2GB in bytes; 0 where none is given. Raises UsageError naming the flag."""
    if text is None:
        return 0
    found = re.fullmatch(r"([0-9]+)\s*([KMG])I?B?", text.strip(), flags=re.IGNORECASE)
    if found is None or not 0 < int(found[1]) << _POWERS[found[2].upper()] <= _MOST:
        raise UsageError(f'{flag} "{text}": a size is expected, e.g. 512MB or 2GB')
    return int(found[1]) << _POWERS[found[2].upper()]
