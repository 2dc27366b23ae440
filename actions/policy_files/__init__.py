"""Policy as a file: read, compared with the database, applied in one transaction. See docs/policy.md."""
