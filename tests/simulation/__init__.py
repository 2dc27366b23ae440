"""The real services under a virtual clock, a simulated network and simulated downstreams, all driven by one seed.

`world` holds what a run is made of, `actors` who acts in it, `invariants` what has to hold after every step, and
`running` the loop. `python -m tests.simulation` runs many; `tests/simulation/bugs` shows that faults would be found.
"""
