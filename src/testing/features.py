"""What a storage promises, as its author declares it to the suites."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Features:
    """
    What the suites ask of a storage beside what all must do.

    What is not promised is not tested, and the reason of each skipped test says so.
    """

    durable: bool = True
    """What was acknowledged is still there after the last handle was closed."""

    shared: bool = True
    """
    Several handles, of one or of many processes, may be open at once and show the same.

    A storage that is durable and not shared must refuse a second handle: two that do not
    know of each other would lose tasks.
    """
