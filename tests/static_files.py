"""WhiteNoise's list of the static files, made once per process instead of once per test client.

Every `Client()` builds the middleware anew, and that looks through all folders of static files.
"""

from typing import Any

from django.conf import settings
from whitenoise.middleware import WhiteNoiseMiddleware

_found: dict[tuple[str, ...], dict[str, Any]] = {}
_look = WhiteNoiseMiddleware.add_files_from_finders


def install() -> None:
    WhiteNoiseMiddleware.add_files_from_finders = _add_files_from_finders


def _add_files_from_finders(middleware: Any) -> None:
    key = (
        middleware.static_prefix,
        *(str(getattr(settings, name, "")) for name in _SETTINGS),
        *(str(getattr(middleware, name)) for name in ("max_age", "charset", "allow_all_origins")),
    )
    if key not in _found:
        before = dict(middleware.files)
        _look(middleware)
        _found[key] = {url: file for url, file in middleware.files.items() if before.get(url) is not file}
    middleware.files.update(_found[key])


_SETTINGS = ("STATICFILES_DIRS", "STATICFILES_FINDERS", "STATIC_ROOT", "STORAGES")
