"""The registry of estimators, apart from them: their names can be listed without importing any."""

from __future__ import annotations

from gibbsian.registry import Registry

ESTIMATORS = Registry("model", "gibbsian.estimators", "ESTIMATORS")
