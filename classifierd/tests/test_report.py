"""The report: whole without a network, honest about what is not known, sound in a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from classifierd.charts import Bar, Dots, Line, bars, binary_bytes, dots, lines, nice_ticks, seconds
from classifierd.cli import main
from classifierd.command_line import EXIT_NO_DEVICE
from classifierd.report import page, quantile
from fake_filesystem import FakeFilesystem
from test_exporter import METRICS, PERIOD, STATUS, STREAM

NOW = datetime(2026, 11, 24, 6, 0, tzinfo=UTC)
STREAMS = {
    "streams": [
        STREAM
        | {
            "lifetime_bytes": 10**8,
            "lifetime_low_bytes": 9 * 10**7,
            "lifetime_high_bytes": 2 * 10**8,
        }
        | {"name": "<script>alert(1)</script>", "pstream": 3}
    ]
}
HISTORY = [
    [1000 * i, *(10**5 * i * each for each in (10, 19, 12, 11, 10, 13))] for i in range(1, 60)
]


class Elements(HTMLParser):
    """Every element with its attributes; what is left open."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "rect", "line", "path", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            assert self.open.pop() == tag


def elements(text: str) -> Elements:
    parser = Elements()
    parser.feed(text)
    parser.close()
    return parser


def report(history: object = HISTORY, status: dict[str, object] = STATUS) -> str:
    return page("/srv/data", status, STREAMS, METRICS, history, NOW)


def test_the_report_names_the_class_of_meta_and_the_intent_log() -> None:
    told: dict[str, object] = {"meta_class": "persistent", "meta_trust": "declared"}
    text = report(status=STATUS | told | {"intent_log": {"bytes": 8 << 20}})
    assert "META persistent (declared) · intent log of 8 MiB" in text
    assert "no intent log" in report(status=STATUS | {"intent_log": {"bytes": 0}})


def test_nothing_is_fetched_and_nothing_runs() -> None:
    seen = elements(report())
    assert not [tag for tag, _ in seen.found if tag in ("script", "img", "iframe", "object")]
    for _, attributes in seen.found:
        for name in ("src", "href", "xlink:href"):
            assert (attributes.get(name) or "data:").startswith("data:")
    assert "url(" not in report()
    assert "@import" not in report()


def test_what_comes_from_names_is_text() -> None:
    assert "<script>" not in report()
    assert "&lt;script&gt;" in report()


def test_every_section_has_its_picture_units_and_legend() -> None:
    text = report()
    for title in (
        "Write amplification over time",
        "Bytes by stream of the device",
        "Lifetimes",
        "Latency percentiles",
        "Trim",
        "What the classifier decided",
    ):
        assert f"<h2>{title}</h2>" in text
    for words in ("WAF (NAND ÷ sent)", "time (UTC)", "95 % limits", "p99.9", "shadow: streams off"):
        assert words in text
    assert "this month (15 B to 17 B)" in text


def test_what_is_not_known_is_said() -> None:
    text = page("/m", {}, {}, {}, None, NOW)
    assert "no daemon has told" in text
    assert "Too little was written" in text
    assert "Nothing was measured yet" in text
    assert "nan" not in text.lower().replace("nand", "")
    for wrong in (7, [[1]], [["x"] * 7], [[1, 2, 3, 4, 5, 6, 7]]):
        assert "Too little was written" in page("/m", {}, {}, {}, wrong, NOW)


def test_a_broken_filesystem_says_so_first() -> None:
    assert "READ-ONLY" in report(status=STATUS | {"degraded_read_only": True})
    assert "READ-ONLY" not in report()


def test_quantiles_are_the_middles_of_fine_buckets() -> None:
    buckets = [[0, 1, 50], [1984, 2000, 49], [4000, 4032, 1]]
    told = [quantile(buckets, share) for share in (0.5, 0.51, 0.99, 0.999)]
    assert told == [1, 1992.5, 1992.5, 4016.5]
    ops = [{"op": "write", "buckets": buckets}, {"op": "odd", "buckets": [7, [1], ["x"] * 3]}]
    text = page("/m", {}, {}, {"ops": ops}, None, NOW)
    assert ">write</text>" in text
    assert ">100</text>" in text
    assert "odd" not in text


def test_scales_cover_what_is_drawn_with_round_numbers() -> None:
    for low, high in ((1.0, 1.9), (0.0, 7.3e9), (3.0, 3.0), (0.0, 0.0), (1.01, 1.02)):
        ticks = nice_ticks(low, high)
        assert ticks[0] <= low
        assert ticks[-1] >= high
        assert 2 <= len(ticks) <= 8


def test_figures_have_units() -> None:
    assert [binary_bytes(n) for n in (0, 999, 1024, 1.5 * 2**20, 412 * 2**30, -5 * 2**20)] == [
        "0 B",
        "999 B",
        "1 KiB",
        "1.5 MiB",
        "412 GiB",
        "-5 MiB",
    ]
    assert [seconds(s) for s in (1e-6, 0.0025, 2.0)] == ["1 µs", "2 ms", "2 s"]


def test_lines_that_coincide_all_show() -> None:
    points = [(0, 1.0), (1, 2.0)]
    svg = lines("t", [Line(str(n), n, points) for n in (1, 2, 3, 4)], "y", str, str)
    widths = [float(each) for each in re.findall(r'fill="none"[^>]*stroke-width="([\d.]+)"', svg)]
    assert len(widths) == 4
    assert all(later < earlier - 1 for earlier, later in pairwise(widths))


def test_ticks_differ_when_values_hardly_do() -> None:
    line = Line("a", 1, [(0, 1.0), (1, 1.002)])
    svg = lines("t", [line], "y", str, lambda y: f"{y:.4g}")
    ticks = re.findall(r'text-anchor="end"[^>]*>([\d.]+)<', svg)
    assert len(ticks) > 3
    assert len(set(ticks)) == len(ticks)


def coordinates(svg: str, name: str) -> list[float]:
    return [float(number) for number in re.findall(rf' {name}="(-?[\d.]+)"', svg)]


def test_marks_stay_inside_their_picture() -> None:
    pictures = (
        bars("t", [Bar("a", [(5, 1), (2, 2)], "7"), Bar("b", [(0, 1)], "0")], "x", str),
        dots("t", [Dots("a", [(1e-6, 1), (3.0, 2)], (1e-6, 3.0))], "x", str),
        lines("t", [Line("a", 1, [(0, 1), (1, None), (2, 3)])], "y", str, str),
    )
    for svg in pictures:
        width, height = (float(n) for n in re.findall(r'viewBox="0 0 (\d\d\d+) (\d+)"', svg)[0])
        for name, most in (
            ("x", width),
            ("cx", width),
            ("x2", width),
            ("y", height),
            ("cy", height),
        ):
            assert all(0 <= each <= most for each in coordinates(svg, name))


def test_the_command_writes_the_page_or_says_why_not(
    filesystem: FakeFilesystem, tmp_path: Path
) -> None:
    filesystem.more = {
        "status": STATUS,
        "metrics": METRICS,
        "savings": {"saved": {"all": PERIOD}, "history": HISTORY},
    }
    out = tmp_path / "report.html"
    assert main(["report", str(tmp_path), "-o", str(out)]) == 0
    assert elements(out.read_text()).open == []
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "no/where")]) == EXIT_NO_DEVICE
    assert list(tmp_path.glob(".report*")) == []


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True])
def test_a_browser_shows_it_without_complaint_or_request(tmp_path: Path, *, dark: bool) -> None:
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("chromium is not installed: scripts/setup --bench")
    html, picture, netlog = (tmp_path / name for name in ("r.html", "r.png", "net.json"))
    html.write_text(report())
    ran = subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--log-net-log={netlog}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            "--window-size=1400,1700",
            f"--screenshot={picture}",
            html.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ":CONSOLE" not in ran.stderr, ran.stderr
    asked = set(
        re.findall(r'"initiator":"(file:[^"]*|null)"[^}]*"url":"(http[^"]*)"', netlog.read_text())
    )
    assert not asked
    import matplotlib.image

    pixels = matplotlib.image.imread(picture)
    corner = pixels[2, 2, :3].mean()
    assert corner < 0.2 if dark else corner > 0.8
    assert (
        len(
            {tuple(row) for row in (pixels[::7, ::7, :3].reshape(-1, 3) * 255).astype(int).tolist()}
        )
        > 20
    )
