"""The secrets that deliveries are signed with. Derived, never stored.

Each comes from SECRET_KEY, the endpoint's salt and a version; rotating is the next version, so nothing in the
database tells any of them. While a SECRET_KEY is exchanged, the old one stands in SECRET_KEY_FALLBACKS, and
deliveries carry a signature by either. See docs/decisions/0019.
"""

import base64
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.utils.crypto import salted_hmac

from actions import positions, times
from actions.locking import for_change
from actions.models import Endpoint

PREFIX: Final = "whsec_"
# How long the secret before counts beside the new one.
OVERLAP: Final = timedelta(hours=24)
_SALT: Final = "landed.notifying.endpoint"


def begin(endpoint: Endpoint) -> str:
    """Gives an unsaved endpoint its secret; returns it, to be shown once. It hears of what happens from now on.

    Call it outside any transaction where that can be.
    """
    endpoint.secret_salt = secrets.token_hex(16)
    positions.stamp()
    endpoint.planned_to = positions.head()
    return current(endpoint)


def current(endpoint: Endpoint) -> str:
    return _derived(endpoint, endpoint.secret_version, settings.SECRET_KEY)


def rotate(endpoint: Endpoint, *, at_once: bool = False) -> str:
    """The next secret, to be shown once. The one before counts for a day more, or (`at_once`) no longer."""
    with transaction.atomic():
        locked = for_change(Endpoint).get(pk=endpoint.pk)
        locked.secret_version += 1
        locked.previous_until = None if at_once else times.now() + OVERLAP
        locked.save(update_fields=["secret_version", "previous_until"])
    endpoint.secret_version, endpoint.previous_until = locked.secret_version, locked.previous_until
    return current(endpoint)


def signing(endpoint: Endpoint, now: datetime) -> list[str]:
    """Those that a delivery is signed with now, the newest first."""
    versions = [endpoint.secret_version]
    if endpoint.previous_until is not None and now < endpoint.previous_until:
        versions.append(endpoint.secret_version - 1)
    return [_derived(endpoint, version, key) for version in versions for key in _keys()]


def _keys() -> Iterable[str]:
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def _derived(endpoint: Endpoint, version: int, key: str) -> str:
    digest = salted_hmac(_SALT, f"{endpoint.secret_salt}:{version}", secret=key, algorithm="sha256").digest()
    return PREFIX + base64.b64encode(digest).decode()
