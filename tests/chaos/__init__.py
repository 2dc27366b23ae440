"""Chaos on real processes: load, faults at random times, then a comparison of all books.

`make chaos MINUTES=5`, or `python -m tests.chaos`. Two web processes, three workers, two clocks, PostgreSQL (or
SQLite, with one web process), Redis and two payments services run as they do in production; agents propose over the
API, people decide at the desk's own pages; meanwhile processes are killed, stopped and started again, and the
services fail in every way they know. Then all faults end, everything comes to rest, and what Landed says is compared
with what really happened. docs/invariants.md says how to read it.
"""
