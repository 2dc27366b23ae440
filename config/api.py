"""The agents' API: one NinjaAPI that mounts the apps' routers."""

from ninja import NinjaAPI

from actions.api import handlers
from actions.api.attempts import router as attempts
from actions.api.events import router as events
from actions.api.intents import router as intents
from actions.api.me import router as me
from reconciliation.api.evidence import router as evidence
from reconciliation.api.webhooks import router as webhooks

api = NinjaAPI(
    title="Landed",
    version="1",
    description=(
        "Did it land? HTTP codes speak of the record, never of the outcome: read `status`, `next_step` and "
        "`message`. Values that you don't know are to be read as: wait."
    ),
    urls_namespace="api",
)
api.add_router("", intents)
api.add_router("", attempts)
api.add_router("", events)
api.add_router("", me)
api.add_router("", webhooks)
api.add_router("", evidence)
handlers.install(api)

urls = api.urls
handlers.as_problems(urls[0])
