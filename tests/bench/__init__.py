"""Figures for people: what devbench costs, and how well its load is held. Prints ratios; never fails on a slow day."""
