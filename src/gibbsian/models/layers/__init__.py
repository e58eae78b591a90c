"""Layers of units: their kinds, stacks of them, and belief networks."""
