"""Many cases at once: looked at again, assigned, put aside, cancelled, rejected. Nothing else: what says that
something happened, or has it sent, is decided one by one."""
