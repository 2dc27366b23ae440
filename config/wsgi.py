"""The WSGI application that granian serves."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_wsgi_application()


def _begin() -> None:
    from django.db import connections  # noqa: PLC0415  the apps must be loaded first

    from config import boot, children  # noqa: PLC0415

    if os.environ.get("LANDED_SUPERVISED"):
        # granian started this process: when it is killed, this must not go on holding its port.
        children.die_with(os.getppid())
    boot.refuse_unsafe()
    connections.close_all()


_begin()
