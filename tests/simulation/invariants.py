"""What has to hold: stub"""
from tests.simulation.world import World, Violation
class Watch:
    def __init__(self, world): self.world=world
    def first_byte(self, request): pass
    def after_step(self): pass
    def at_the_end(self): pass
    def next_due(self): return None
    def what_hangs(self): return ""
