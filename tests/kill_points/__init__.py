"""A real process on a real database, killed at every commit and every socket write in turn; then somebody starts it
anew, and every invariant holds.

`seams` knows where one can die, `acts` what is done meanwhile, `lives` how processes begin and end, `heirs` what
comes after, `holds` what has to be true then. `zygote` does it, for `test_kill_points`.
"""
