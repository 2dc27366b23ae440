"""Webhooks that Landed sends: events of the outbox, delivered to the endpoints of their agents.

Planned, claimed, sent and saved are four steps: no database transaction is open while the network is used.
"""
