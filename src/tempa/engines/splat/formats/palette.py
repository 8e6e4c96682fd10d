"""Tables that stand in for many values: 256 numbers for a column, up to 65,536 vectors for harmonics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

TABLE_SIZE = 256
_BINS = 4096
VECTORS_MAX = 65_536


def of_values(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """A table of 256 for an array, and each value's place in it.

    Half of the steps are spread evenly over the range, so that no value is further than 1/254 of it
    from a step; the other half by the cube root of the density, which is what makes the mean square
    error least (Panter and Dite 1951).
    """
    least, most = float(values.min()), float(values.max())
    if not most > least:
        return np.full(TABLE_SIZE, least, np.float32), np.zeros(values.shape, np.uint8)
    density, edges = np.histogram(values, _BINS, (least, most))
    weight = np.cbrt(density)
    reached = np.concatenate(([0.0], np.cumsum(weight / weight.sum() + 1.0 / _BINS)))
    table = np.interp(np.linspace(0.0, reached[-1], TABLE_SIZE), reached, edges).astype(np.float32)
    middles = (table[1:].astype(np.float64) + table[:-1]) / 2
    return table, np.searchsorted(middles, values).astype(np.uint8)


def of_vectors(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """A palette for rows of an array, and each row's number in it.

    A balanced tree: every node is cut at the median of its widest column; its leaves' means are the
    palette. Up to 65,536 rows it holds each row as it is. Deterministic, and seconds where k-means
    takes minutes.
    """
    if len(vectors) <= VECTORS_MAX:
        return vectors, np.arange(len(vectors))
    order = np.arange(len(vectors))
    starts = np.array([0])
    while len(starts) < VECTORS_MAX:
        order, starts = _halved(vectors, order, starts)
    sizes = np.diff(np.append(starts, len(order)))
    means = np.add.reduceat(vectors[order].astype(np.float64), starts, axis=0) / sizes[:, None]
    labels = np.empty(len(order), np.int64)
    labels[order] = np.repeat(np.arange(len(starts)), sizes)
    return means.astype(np.float32), labels


def _halved(
    vectors: NDArray[np.float32], order: NDArray[np.intp], starts: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Every node cut in two: rows sorted within their node by its widest column."""
    sizes = np.diff(np.append(starts, len(order)))
    sorted_rows = vectors[order]
    spans = np.maximum.reduceat(sorted_rows, starts, axis=0) - np.minimum.reduceat(
        sorted_rows, starts, axis=0
    )
    column = np.repeat(np.argmax(spans, axis=1), sizes)
    keys = sorted_rows[np.arange(len(order)), column]
    node = np.repeat(np.arange(len(starts)), sizes)
    order = order[np.lexsort((keys, node))]
    return order, np.sort(np.concatenate((starts, starts + (sizes + 1) // 2)))
