"""The learner's decisions in sentences for the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from classifierd.charts import binary_bytes
from classifierd.classes import LifetimeKMeans
from classifierd.clusters import ChunkClusters
from classifierd.learner import Learner
from classifierd.records import BLOCK_BYTES


def size(pages: float) -> str:
    """Format a number of pages as bytes: "1.5 GiB"."""
    return binary_bytes(pages * BLOCK_BYTES)


def class_lines(learner: Learner) -> Iterator[str]:
    """A line for each class: its lifetime, its share of the writes, and its vStreams."""
    for each in learner.report():
        members = ", ".join(f"{v.label} {share:.0%}" for v, share in each.members)
        yield (
            f"pStream {each.pstream}: lives {size(2.0**each.life_log2)} of writes, "
            f"{each.share:.1%} of volume: {members}"
        )


def chunk_lines(clusters: ChunkClusters) -> Iterator[str]:
    """A line for each class of chunks."""
    for each in clusters.classes():
        yield chunk_line(each.identity, each.chunks, each.features)


def chunk_line(identity: int, chunks: int, features: Mapping[str, float]) -> str:
    """Describe a class of chunks by its centre."""
    return (
        f"chunks, class {identity}: {chunks} chunks, overwritten "
        f"{features['relative']:.3g} times the average, last {size(features['recency_pages'])} "
        f"ago, each {size(features['interval_pages'])} (times 2 to the "
        f"±{features['interval_spread']:.2g}), {features['trim_ratio']:.0%} by trim"
    )


def kmeans_line(learner: Learner, kmeans: LifetimeKMeans) -> str:
    """Where K-means on the vStreams' lifetimes would cut, to be compared."""
    _, value, volume = learner.vstream_lifetimes()
    if len(value) == 0:
        return "K-means on vStream lifetimes: nothing yet"
    centres = ", ".join(size(2.0**c) for c in np.asarray(kmeans.fit(value, volume).centres_))
    return f"K-means on vStream lifetimes: centres {centres}"
