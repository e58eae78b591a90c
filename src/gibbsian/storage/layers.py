"""Layers of units as the header of a file holds them."""

from __future__ import annotations

from typing import Any

from gibbsian.models.layers import CategoricalLayer, GaussianLayer, Layer, as_layer


def written_layer(layer: Layer) -> dict[str, Any]:
    """Return a layer as a header holds it: its kind, and what the kind needs besides.

    Examples
    --------
    >>> from gibbsian.models.layers import CategoricalLayer
    >>> from gibbsian.storage.layers import written_layer
    >>> written_layer(CategoricalLayer((2, 3)))
    {'kind': 'categorical', 'n_units': 2, 'sizes': [2, 3]}
    """
    plain = {"kind": layer.kind, "n_units": layer.n_units}
    if isinstance(layer, CategoricalLayer):
        return {**plain, "sizes": list(layer.sizes)}
    if isinstance(layer, GaussianLayer):
        return {**plain, "deviations": list(layer.deviations)}
    return plain


def read_layer(written: dict[str, Any]) -> Layer:
    """Return the layer that `written_layer` wrote.

    Examples
    --------
    >>> from gibbsian.storage.layers import read_layer
    >>> read_layer({"kind": "spin", "n_units": 4})
    SpinLayer(n_units=4)
    """
    settings = {name: value for name, value in written.items() if name not in ("kind", "n_units")}
    return as_layer(written["kind"], written["n_units"], **settings)
