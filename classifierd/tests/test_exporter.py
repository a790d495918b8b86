"""Metrics: names by convention, what is told, and an endpoint that bad requests do not harm."""

from __future__ import annotations

import http.client
import json
import random
import re
import select
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from classifierd import exporter
from classifierd.cli import main
from classifierd.command_line import EXIT_NO_DEVICE, EXIT_USAGE
from classifierd.exporter import Endpoint, keep_textfile, render
from fake_filesystem import FakeFilesystem

MOUNT = Path("/srv/data")
PERIOD = {
    "since_ms": 1,
    "written_bytes": 10,
    "nand_off_bytes": 30,
    "nand_placed_bytes": 14,
    "nand_oracle_bytes": 12,
    "saved_low_bytes": 15,
    "saved_bytes": 16,
    "saved_high_bytes": 17,
}
STATUS: dict[str, object] = {
    "uuid": "12345678",
    "label": 'say "hi"\n',
    "app_bytes": 4096,
    "placement": "auto",
    "device": {
        "written_bytes": 8192,
        "nand_bytes": None,
        "erases": 3,
        "streams": [
            {"stream": 0, "written_bytes": 5, "gc_bytes": 1},
            {"stream": 1, "gc_bytes": None},
        ],
    },
    "space": {"data_blocks": 10, "free_blocks": 4},
    "degraded_read_only": False,
    "saved": {"one_in": 64, "all": PERIOD, "month": PERIOD},
}
STREAM = {"vstream": 7, "source": "hint", "name": "logs", "written_bytes": 9, "lifetime_bytes": 0}
METRICS: dict[str, object] = {
    "version": "0.1.0",
    "bounds_us": [1, 2, 4],
    "ops": [
        {
            "op": "write",
            "sum_ns": 5_000_000,
            "counts": [1, 2, 0, 3],
            "buckets": [[992, 1000, 1], [1984, 2000, 2], [1_638_400, 1_654_784, 3]],
        },
        {"op": "odd", "sum_ns": 1, "counts": [1]},
    ],
}


@pytest.fixture
def served(filesystem: FakeFilesystem) -> FakeFilesystem:
    filesystem.more = {"status": STATUS, "metrics": METRICS}
    filesystem.streams = [STREAM]
    return filesystem


def samples(text: bytes) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items()) - {("mountpoint", str(MOUNT))}): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def labelled(**labels: str) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())


def test_what_the_filesystem_says_is_told(served: FakeFilesystem) -> None:
    assert served.path.exists()
    told = samples(render([MOUNT]))
    assert told["streamfs_up", labelled()] == 1
    assert told["streamfs_application_written_bytes_total", labelled()] == 4096
    assert told["streamfs_stream_written_bytes_total", labelled(pstream="0")] == 5
    assert told["streamfs_build_info", labelled(version="0.1.0")] == 1
    assert told["streamfs_data_free_bytes", labelled()] == 4 * 4096
    saved = labelled(period="month", limit="estimate")
    assert told["streamfs_saved_nand_bytes", saved] == 16
    off = labelled(streams="off")
    assert told["streamfs_shadow_nand_written_bytes_total", off] == 30
    # A value that the filesystem does not tell is left out, not 0.
    names = {name for name, _ in told}
    assert "streamfs_device_nand_written_bytes_total" not in names
    assert "streamfs_vstream_lifetime_bytes" not in names


def test_no_names_of_programs_or_directories_are_told(served: FakeFilesystem) -> None:
    served.streams = [STREAM | {"comm": "payrolld", "ext": "salary", "dir": "secret"}]
    text = render([MOUNT]).decode()
    assert 'name="logs"' in text
    assert not re.search("payrolld|salary|secret", text)
    assert {"op": "streams", "names": "built-in"} in served.asked


def test_latencies_are_cumulative_histograms_in_seconds(served: FakeFilesystem) -> None:
    assert served.path.exists()
    told = samples(render([MOUNT]))
    name = "streamfs_op_duration_seconds"
    counts = [told[f"{name}_bucket", labelled(op="write", le=le)] for le in ("1e-06", "2e-06")]
    assert counts == [1, 3]
    assert told[f"{name}_bucket", labelled(op="write", le="+Inf")] == 6
    assert told[f"{name}_count", labelled(op="write")] == 6
    assert told[f"{name}_sum", labelled(op="write")] == 0.005
    assert (f"{name}_count", labelled(op="odd")) not in told


def test_names_follow_the_conventions(served: FakeFilesystem) -> None:
    assert served.path.exists()
    for family in text_string_to_metric_families(render([MOUNT]).decode()):
        assert re.fullmatch(r"streamfs_[a-z][a-z0-9_]*[a-z0-9]", family.name)
        assert family.documentation
        if family.type == "counter":
            assert all(sample.name.endswith("_total") for sample in family.samples)
        assert not re.search(r"_(ms|us|kb|mib|blocks|percent)(_|$)", family.name), family.name


@pytest.mark.parametrize("answer", [{}, {"device": 7, "space": [], "saved": {"all": "x"}}])
def test_answers_that_make_no_sense_are_left_out(
    filesystem: FakeFilesystem, answer: dict[str, object]
) -> None:
    filesystem.more = {"status": answer, "metrics": {"ops": [7, {}], "bounds_us": "x"}}
    told = samples(render([MOUNT]))
    assert told["streamfs_up", labelled()] == 1


def test_one_that_is_not_there_is_down_and_the_others_are_told(
    served: FakeFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def path_of(mount: Path, *_: object) -> bytes:
        return bytes(served.path if mount == MOUNT else served.path.with_name("nobody"))

    monkeypatch.setattr("classifierd.control.os.getxattr", path_of)
    text = render([Path("/gone"), MOUNT]).decode()
    assert 'streamfs_up{mountpoint="/gone"} 0.0' in text
    assert f'streamfs_up{{mountpoint="{MOUNT}"}} 1.0' in text


def test_one_that_is_named_twice_is_told_once(served: FakeFilesystem) -> None:
    assert served.path.exists()
    up = [line for line in render([MOUNT, MOUNT]).splitlines() if line.startswith(b"streamfs_up{")]
    assert len(up) == 1


@pytest.fixture
def endpoint(served: FakeFilesystem) -> Iterator[Endpoint]:
    assert served.path.exists()
    with Endpoint([MOUNT], "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def get(endpoint: Endpoint, path: str, method: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.server_port, timeout=10)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_get_metrics_is_answered_and_nothing_else(endpoint: Endpoint) -> None:
    status, body = get(endpoint, "/metrics")
    assert status == 200
    assert b"streamfs_up" in body
    assert get(endpoint, "/metrics?name=x")[0] == 200
    assert get(endpoint, "/")[0] == 200
    assert get(endpoint, "/../etc/passwd")[0] == 404
    assert get(endpoint, "/metrics", "POST")[0] == 501
    assert get(endpoint, "/metrics", "DELETE")[0] == 501


PIECES = (
    b"GET", b"/metrics", b" ", b"HTTP/1.1", b"HTTP/9.9", b"HTTP/", b"\r\n", b"\n", b"\r", b"\0",
    b"Host: x", b":", b"Content-Length: 99999999999", b"Content-Length: -1", b"\xff\xfe",
    b"Expect: 100-continue", b"Transfer-Encoding: chunked", b"A" * 70_000, b"%2e%2e/", b"x: y\r\n",
)  # fmt: skip


def bad_request(rng: random.Random) -> bytes:
    """Almost a request, or pieces of one, or noise."""
    kind = rng.randrange(3)
    if kind == 0:
        return rng.randbytes(rng.randrange(1, 400))
    if kind == 1:
        return b"".join(rng.choices(PIECES, k=rng.randrange(1, 12)))
    good = bytearray(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n")
    for _ in range(rng.randrange(1, 6)):
        good[rng.randrange(len(good))] = rng.randrange(256)
    return bytes(good)


def provoke(endpoint: Endpoint, count: int, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(count):
        with socket.create_connection(("127.0.0.1", endpoint.server_port), timeout=20) as peer:
            try:
                peer.sendall(bad_request(rng))
                peer.shutdown(socket.SHUT_WR)
                answer = b""
                while part := peer.recv(1 << 16):
                    answer += part
            except TimeoutError:
                raise
            except OSError:
                continue  # It hung up on it.
        # Either nothing, or an answer; HTTP/0.9 has no status line.
        assert b"Traceback" not in answer, (seed, number)


def test_bad_requests_leave_no_harm(endpoint: Endpoint) -> None:
    before = threading.active_count()
    provoke(endpoint, 600, 1)
    assert get(endpoint, "/metrics")[0] == 200
    assert threading.active_count() <= before + 2


@pytest.mark.long
def test_very_many_bad_requests_leave_no_harm(endpoint: Endpoint) -> None:
    for seed in range(100):
        provoke(endpoint, 2000, seed)
    assert get(endpoint, "/metrics")[0] == 200


def test_who_says_nothing_takes_no_place_for_long(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint.RequestHandlerClass, "timeout", 0.2)
    silent = [socket.create_connection(("127.0.0.1", endpoint.server_port)) for _ in range(40)]
    for peer in silent:
        peer.settimeout(10)
        assert peer.recv(1) == b""
        peer.close()
    assert get(endpoint, "/metrics")[0] == 200


def test_no_more_are_listened_to_than_there_are_places(endpoint: Endpoint) -> None:
    silent = [socket.create_connection(("127.0.0.1", endpoint.server_port)) for _ in range(40)]
    deadline = time.monotonic() + 3  # before any times out
    while len(gone := select.select(silent, [], [], 0)[0]) < 24 and time.monotonic() < deadline:
        time.sleep(0.01)
    for peer in silent:
        peer.close()
    assert len(gone) == 24


def test_however_many_scrape_the_filesystem_is_asked_by_one_at_a_time(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking, most = 0, 0

    def render(_: list[Path]) -> bytes:
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        time.sleep(0.02)
        asking -= 1
        return b"done"

    monkeypatch.setattr(exporter, "render", render)
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: get(endpoint, "/metrics"), range(8)))
    assert [status for status, *_ in told] == [200] * 8
    assert most == 1


def test_who_waits_for_others_in_vain_is_told_so(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint.RequestHandlerClass, "patience_seconds", 0.1)
    asked, goes_on = threading.Event(), threading.Event()

    def render(_: list[Path]) -> bytes:
        asked.set()
        assert goes_on.wait(10)
        return b"done"

    monkeypatch.setattr(exporter, "render", render)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(get, endpoint, "/metrics")
        try:
            assert asked.wait(10)
            assert get(endpoint, "/metrics")[0] == 503
        finally:
            goes_on.set()
        assert slow.result() == (200, b"done")
    assert get(endpoint, "/metrics") == (200, b"done")


def test_the_textfile_is_replaced_whole_until_stopped(
    served: FakeFilesystem, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert served.path.exists()
    path = tmp_path / "streamfs.prom"
    seen: list[bytes] = []

    def wait(_: float) -> bool:
        seen.append(path.read_bytes())
        return len(seen) == 2

    keep_textfile([MOUNT], path, 1, wait)
    assert all(b"streamfs_up" in text for text in seen)
    assert sorted(tmp_path.glob("*.prom*")) == [path]
    keep_textfile([MOUNT], tmp_path / "no/where.prom", 1, lambda _: True)
    assert "No such file" in caplog.text


def test_the_command_prints_writes_and_refuses(
    served: FakeFilesystem, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert served.path.exists()
    assert main(["metrics", "--once", str(MOUNT)]) == 0
    assert "streamfs_up" in capsys.readouterr().out
    path = tmp_path / "x.prom"
    assert main(["metrics", "--once", "--textfile", str(path), str(MOUNT)]) == 0
    assert path.read_bytes().startswith(b"# HELP")
    assert (
        main(["metrics", "--once", "--textfile", str(tmp_path / "a/b"), str(MOUNT)])
        == EXIT_NO_DEVICE
    )
    for wrong in (["--listen", "nonsense"], ["--listen", "127.0.0.1:70000"], ["--every", "0"]):
        with pytest.raises(SystemExit) as ended:
            main(["metrics", *wrong, str(MOUNT)])
        assert ended.value.code == EXIT_USAGE


def test_the_model_in_use_is_named(served: FakeFilesystem) -> None:
    model = {"adopted": True, "kind": "life-table", "generation": 4, "adoptions": 3, "refused": 1}
    served.more = {"status": STATUS | {"model": model}, "metrics": METRICS}
    text = render([MOUNT]).decode()
    assert 'streamfs_model_info{kind="life-table",mountpoint="/srv/data"} 1.0' in text
    assert 'streamfs_model_generation{mountpoint="/srv/data"} 4.0' in text
    assert 'streamfs_models_adopted_total{mountpoint="/srv/data"} 3.0' in text
    served.more["status"] = STATUS | {"model": model | {"adopted": False}}
    assert "streamfs_model_info" not in render([MOUNT]).decode()


DASHBOARD = Path(__file__).resolve().parents[2] / "docs/grafana/streamfs.json"


def test_every_query_of_the_dashboard_asks_for_metrics_and_labels_that_exist(
    served: FakeFilesystem,
) -> None:
    told = {
        "device": dict.fromkeys(("written_bytes", "nand_bytes", "trimmed_bytes", "flushes"), 1)
        | {"streams": [{"stream": 0, "written_bytes": 5, "gc_bytes": 1}]},
        "meta": {"fences": 1, "words_programmed": 1},
        "model": {"generation": 1, "refused": 0},
        "checksum_errors": 0,
    }
    served.more = {"status": STATUS | told, "metrics": METRICS}
    served.streams = [STREAM | {"lifetime_bytes": 5}]
    labels: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(render([MOUNT]).decode()):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [
        (target["expr"], target["legendFormat"])
        for panel in dashboard["panels"]
        for target in panel["targets"]
    ]
    assert len(queries) > 20
    for query, legend in queries:
        names = re.findall(r"streamfs_[a-z0-9_]+", query)
        assert names, query
        assert set(names) <= labels.keys(), query
        asked = set(re.findall(r'([a-z]+)="', query)) | set(re.findall(r"{{(\w+)}}", legend))
        assert asked <= set.union(*(labels[name] for name in names)), query
    places = [tuple(panel["gridPos"].values()) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
    assert all(x + width <= 24 for x, _, width, _ in places)
