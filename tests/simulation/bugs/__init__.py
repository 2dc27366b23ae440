"""Deliberate bugs: each changes a line or two of the real code, as a hurried hand might, and the simulation must find
it. `make mutants` prints how soon, and by which invariant."""
