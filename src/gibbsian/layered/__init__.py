"""Restricted and deep machines: layers of units, learned by minibatches.

Depends on models, samplers, diagnostics, optimizers and the learners' driver; knows nothing of files or estimators.
"""
