"""The admin pages of `reconciliation`, and what it adds to an intent's page."""

from reconciliation.admin import books, deliveries, desk, intents, queue

books.register()
deliveries.register()
desk.register()
queue.register()
intents.register()
