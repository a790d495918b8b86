"""Pictures of what was learned: lifetimes by class, and how far predictions can be believed.

Results are plain arrays, so that tests need no matplotlib; only draw_learned() imports it.
Lifetimes are in pages written in between. The lifetime of a page that is alive at the end is
unknown. At each age, therefore, only pages count that were written at least that long before the
end.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from classifierd import _core
from classifierd.learner import Learner
from classifierd.pictures import COLOURS, encoded, kind_of
from classifierd.progress import Progress
from streamfs_lab.policies import Workload

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_IMMORTAL = np.uint64(2**64 - 1)
_SCORE_CLASSES = 64  # of the logistic model; a page's class number is its score
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_WARMUP = 0.3  # of the pages, as in a replay
_PAGES_MIN = 50  # a point of fewer pages is not drawn


@dataclass(frozen=True)
class Learned:
    """The fate of each page written after the warm-up, and the predictions made for it."""

    age: Ints  # pages written until its death, or until the end
    watched: Ints  # pages written from its write to the end
    cls: Ints  # the class it got
    expected: dict[str, Ints]  # by model: larger is longer, any unit
    table_log2: Floats  # the life table's expectation; NaN where it had none
    landmarks: list[int]  # ages in pages


def learned(workload: Workload, progress: Progress | None = None) -> Learned:
    """Learn the workload, strictly causally, and set predictions beside what happened."""
    records = workload.records
    model = _core.Predictor(workload.end, workload.live_pages, [workload.pstreams, _SCORE_CLASSES])
    learner = Learner(workload.end, workload.pstreams, workload.epoch_settings)
    learner.know(workload.vstreams)
    steps, said, at = [], [], 0
    while at < len(records):
        part = records[at : at + max(1, learner.feed(records[at:]))]
        row_of, lifetimes, chunks = learner.known_
        steps.append(_core.tags(part, row_of, lifetimes, chunks))
        said.append(model.feed(part, learner.known_))
        at += len(part)
        if progress is not None:
            progress.reached(at, len(records))
        if learner.life.epoch_due:
            learner.end_epoch()
            model.end_epoch()
    lives = _core.PageTrace(records).lifetimes()
    warm = int(len(lives) * _WARMUP)
    step = np.concatenate(steps)[warm:].astype(np.int64)
    classes = np.concatenate(said, axis=1)[:, warm:].astype(np.int64)
    until_end = len(lives) - np.arange(warm, len(lives))
    age = np.where(lives[warm:] == _IMMORTAL, until_end, lives[warm:]).astype(np.int64)
    return Learned(
        age,
        until_end,
        classes[0],
        {"life table": step, "logistic": classes[1]},
        np.where(step > 0, (step - 1) / 2, np.nan),
        list(model.landmarks),
    )


def decided(found: Learned, landmark: int) -> npt.NDArray[np.bool_]:
    """Whether it is known of each page if it reached the landmark."""
    return found.watched >= landmark


def auc(score: Ints, positive: npt.NDArray[np.bool_]) -> float:
    """The chance that a positive scores above a negative, ties half; NaN where one is missing.

    By rank sums: Mann and Whitney, 1947.
    """
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if positives == 0 or negatives == 0:
        return float("nan")
    values, inverse, counts = np.unique(score, return_inverse=True, return_counts=True)
    rank = np.cumsum(counts) - (counts - 1) / 2
    total = float(rank[inverse.reshape(-1)][positive].sum())
    del values
    return (total - positives * (positives + 1) / 2) / (positives * negatives)


def aucs(found: Learned, model: str) -> Floats:
    """A model's AUC at each landmark, [landmarks]."""
    out = []
    for landmark in found.landmarks:
        sure = decided(found, landmark)
        out.append(auc(found.expected[model][sure], found.age[sure] >= landmark))
    return np.array(out)


def calibration(found: Learned, landmark: int) -> tuple[Floats, Floats]:
    """(share said, share seen) of pages that reach a landmark, by what the life table expected.

    The share said assumes a constant death rate: exp(-landmark / expected).
    """
    sure = decided(found, landmark) & ~np.isnan(found.table_log2)
    said, seen = [], []
    for value in np.unique(found.table_log2[sure]):
        mine = sure & (found.table_log2 == value)
        if mine.sum() >= _PAGES_MIN:
            said.append(np.exp(-landmark / 2.0**value))
            seen.append(float((found.age[mine] >= landmark).mean()))
    return np.array(said), np.array(seen)


def quantiles(found: Learned) -> dict[int, Floats]:
    """By class: quantiles of log2 lifetimes, [5]. A page alive at the end counts with its age."""
    out = {}
    for cls in np.unique(found.cls):
        ages = found.age[found.cls == cls]
        out[int(cls)] = np.quantile(np.log2(np.maximum(ages, 1)), _QUANTILES)
    return out


def draw_learned(found: Learned, path: Path, title: str) -> None:
    """Draw lifetimes by class, calibration, and AUC by age. Raises OSError, ImportError."""
    from matplotlib.figure import Figure  # slow to import, and nobody else needs it

    figure = Figure(figsize=(15, 5.4), layout="constrained")
    figure.suptitle(f"{title}: lifetimes that were learned, and what became of the pages")
    lives, calibrated, ranked = figure.subplots(1, 3)
    for cls, (lowest, low, middle, high, highest) in quantiles(found).items():
        lives.vlines(cls, 2**lowest, 2**highest, color=COLOURS[6])
        lives.vlines(cls, 2**low, 2**high, color=COLOURS[0], linewidth=8)
        lives.plot(cls, 2**middle, "o", color="black")
    lives.set_yscale("log", base=2)
    lives.set(
        title="Lifetimes by class (10 to 90 %; thick: 25 to 75 %; dot: median)",
        xlabel="class that the logistic model chose (higher lives longer)",
        ylabel="lifetime (4 KiB pages written in between)",
    )
    lives.title.set_fontsize(10)
    chosen = found.landmarks[:: max(1, len(found.landmarks) // 4)]
    for i, landmark in enumerate(chosen):
        calibrated.plot(
            *calibration(found, landmark), "osD^v"[i % 5], color=COLOURS[i % 8],
            label=f"{landmark:,} pages",
        )  # fmt: skip
    calibrated.plot([0, 1], [0, 1], color=COLOURS[6], label="exact prediction")
    calibrated.set_title("Does the life table's prediction come true?", fontsize=10)
    calibrated.set(
        xlabel="predicted share of pages that reach this age",
        ylabel="share that reached it",
    )
    calibrated.legend(title="age", fontsize=8)
    for i, model in enumerate(found.expected):
        ranked.plot(found.landmarks, aucs(found, model), "os"[i % 2], linestyle="-",
                    color=COLOURS[i], label=model)  # fmt: skip
    ranked.axhline(0.5, color=COLOURS[6], linestyle="--", label="chance")
    ranked.set_title("How well the models tell long lives from short ones", fontsize=10)
    ranked.set(
        xlabel="age that separates short from long (pages)",
        ylabel="AUC (0.5: chance, 1: always right)",
        xscale="log",
        ylim=(0, 1.02),
    )
    ranked.legend(loc="lower left")
    path.write_bytes(encoded(figure, kind_of(path)))
