"""The admin pages of `actions`: policy is edited here, everything else is looked at."""

from actions.admin import agents, anchors, breakers, endpoints, intents, log, policy, records, stops

policy.register()
agents.register()
intents.register()
records.register()
log.register()
breakers.register()
stops.register()
endpoints.register()
anchors.register()
