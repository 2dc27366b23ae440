"""`landed-mcp`: Landed's actions as tools of the Model Context Protocol. Needs `landed-client[mcp]`.

What a host may rely on is in docs/mcp.md. Nothing here approves, decides or reports.
"""
