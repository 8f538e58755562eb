"""
Which names a server answers to.

A web page may have its own name resolve to 127.0.0.1 (DNS rebinding), and its visitors'
browsers then take a server on their computer for a part of that page. Only the header Host
tells the two apart.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from typing import Final

import attrs

_HOST: Final = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::\d{0,5})?")


@attrs.frozen(kw_only=True)
class Hosts:
    """
    The rule for one server.

    On a loopback address these are `localhost`, the addresses of loopback, and `names`.
    Elsewhere every name will do, or where there are `names` those, those of loopback and
    every address: only names can be rebound.
    """

    names: Collection[str] = ()
    loopback: bool = True

    def allow(self, header: str | None) -> bool:
        """Return whether to answer a request with this header Host."""
        if not (self.loopback or self.names):
            return True
        found = _HOST.fullmatch(header or "")
        if found is None:
            return False
        name = (found["v6"] or found["name"]).lower().removesuffix(".")
        if name == "localhost" or name in self.names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self.loopback
