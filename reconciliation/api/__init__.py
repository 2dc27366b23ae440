"""The HTTP API of `reconciliation`: webhooks in, and what services saw that look with code of their own."""
