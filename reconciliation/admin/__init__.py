"""The admin pages of `reconciliation`, and what it adds to an intent's page."""

from reconciliation.admin import books, deliveries, intents, queue

books.register()
deliveries.register()
queue.register()
intents.register()
