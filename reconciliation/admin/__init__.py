"""The admin pages of `reconciliation`, and what it adds to an intent's page."""

from reconciliation.admin import books, intents, queue

books.register()
queue.register()
intents.register()
