"""Learners of the full-span log-linear model (TA22): moves in the space of functions, on one table of all states.

`problem` has the data's table and what functions cost, `moves` change a model function by function or all parameters at
once, `fill` spreads rows with missing cells and hidden variables over their completions, `learner` puts them together.
"""
