"""The team, its figures, what it is told by e-mail, and how each likes the desk."""
