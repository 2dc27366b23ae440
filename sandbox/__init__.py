"""A payments service to practise on: its own process, its own ledger, and faults to order.

It stands in for a downstream that Landed does not control, so it imports nothing of the app and owns its
sockets: a test that orders "book, then cut the answer in half" gets exactly those bytes.
"""
