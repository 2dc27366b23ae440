"""The admin pages of `actions`: policy is edited here, everything else is looked at."""

from actions.admin import agents, intents, log, policy, records

policy.register()
agents.register()
intents.register()
records.register()
log.register()
