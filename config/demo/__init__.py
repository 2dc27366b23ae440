"""The demo: seeded policy and people, some telling cases, and live traffic with faults."""
