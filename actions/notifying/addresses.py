"""Which addresses a webhook may be sent to: none that only this side of a firewall can reach.

The rules are requests-hardened's; they are asked about every address that a host name stands for, and the very
addresses that were asked about are connected to (`transport.Limits.vet`). So a name that changes between the look and
the connection gains nothing. Redirects are not followed by the transport.
"""

import ipaddress
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from requests_hardened.ip_filter import InvalidIPAddress, get_ip_address

from actions import transport

# Public by its number, and inside all the same: what every virtual machine of Azure is told its certificates by.
_INSIDE: Final = frozenset({ipaddress.ip_address("168.63.129.16")})


class AddressRefused(OSError):
    """A webhook is not sent there."""


def vet(address: str) -> None:
    """Raises AddressRefused for an address that is not public."""
    plain = address.split("%", 1)[0]  # the zone of a link-local one
    try:
        found, _ = get_ip_address(plain, 0, allow_loopback=False)
    except InvalidIPAddress:
        raise AddressRefused(f"{plain} is not a public address") from None
    except socket.gaierror:
        # A host without IPv6 knows no such addresses, and can't reach them; the name's others may be fine.
        found = ipaddress.ip_address(plain)
    # What the library lets through: site-local (RFC 3879), unassigned, and IPv4 in the last bits (RFC 4291 §2.5.5.1).
    inside = found.is_reserved or found.is_multicast or getattr(found, "is_site_local", False)
    if inside or not found.is_global or (getattr(found, "ipv4_mapped", None) or found) in _INSIDE:
        raise AddressRefused(f"{plain} is not a public address")


def vetting(url: str) -> Callable[[str], None] | None:
    """What looks at the addresses of `url`; None where LANDED_PRIVATE_RECEIVERS names its host and port."""
    return None if _named(url) else vet


def fault(url: str) -> str:
    """Why webhooks can't be sent to `url`, as far as that shows without the network; "" when it doesn't."""
    try:
        transport.check(transport.Call("POST", url, {}))
    except ValueError as wrong:
        return f"{str(wrong)[:1].upper()}{str(wrong)[1:]}."
    parts = urlsplit(url)
    if parts.scheme != "https" and settings.MODE == "production":
        return "Webhooks are sent over https only."
    if _named(url):
        return ""
    with suppress(socket.gaierror):
        # Numbers in whatever spelling (decimal, hexadecimal, octal) are resolved without asking anybody.
        for *_, found in socket.getaddrinfo(parts.hostname, None, flags=socket.AI_NUMERICHOST):
            try:
                vet(str(found[0]))
            except AddressRefused as refused:
                return f"{refused}."
    return ""


def _named(url: str) -> bool:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{port}" in settings.LANDED_PRIVATE_RECEIVERS
