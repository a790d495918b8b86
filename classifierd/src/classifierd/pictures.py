"""Colours, formats and legends of pictures. Only functions that draw import matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 200
# Colour-blind readers can tell these apart, too (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5a5a5a", "#f0e442")
Format = Literal["png", "svg"]


def kind_of(path: Path) -> Format:
    """Tell the format from the file's name. Raises ValueError."""
    if path.suffix == ".png":
        return "png"
    if path.suffix == ".svg":
        return "svg"
    msg = f"{path}: a picture's name ends in .png or .svg"
    raise ValueError(msg)


def encoded(figure: Figure, kind: Format) -> bytes:
    """Encode a picture; the same figure gives the same bytes."""
    import matplotlib as mpl

    out = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "streamfs", "svg.fonttype": "none"}):
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(out, format=kind, dpi=DPI, metadata=metadata)
    return out.getvalue()


def key_beside(axes: Axes, handles: Sequence[Any], title: str | None = None) -> None:
    """Put a legend to the right of a panel; a constrained layout leaves room for it."""
    axes.legend(
        handles=handles, title=title, loc="upper left", bbox_to_anchor=(1.01, 1),
        borderaxespad=0, fontsize=9,
    )  # fmt: skip
