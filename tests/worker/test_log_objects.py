"""Whole logs in an object store: one object a batch, by boto3 and only where it is needed, and no job waits for it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import UUID

import pytest

from build import a_stored_job
from rota._core.job_log import LogLine
from rota.errors import ConfigError
from rota.stores.memory import MemoryStore
from rota.worker.execution import Run
from rota.worker.log_objects import FULL, Objects, objects
from rota.worker.log_place import log_place
from rota.worker.logbook import Logbook

JOB = UUID("0198c1a2-7c1e-7123-8123-12341234129f")
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


class Bucket(ThreadingHTTPServer):
    """As much of S3 as a PUT needs: it takes signed requests, and can refuse them or hang up."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.kept: dict[str, bytes] = {}
        self.heard: list[dict[str, str]] = []
        self.lines = 0
        self.status, self.hangs_up = 200, False
        self.url = f"http://localhost:{self.server_port}"  # a name: an address would get paths anyway

    @property
    def texts(self) -> list[str]:
        return [body.decode() for _, body in sorted(self.kept.items())]


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Bucket

    def setup(self) -> None:
        super().setup()
        self.server.lines += 1

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.heard.append({name.lower(): value for name, value in self.headers.items()})
        status = self.server.status
        if status == 200:
            self.server.kept[self.path] = body
        answer = (
            b"" if status == 200 else b"<Error><Code>AccessDenied</Code><Message>not you</Message></Error>"
        )
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
        self.close_connection = self.server.hangs_up

    def log_message(self, *_words: object) -> None: ...


@pytest.fixture(autouse=True)
def _nobody(monkeypatch, tmp_path):
    """Neither this machine nor whoever runs the tests lends credentials, and nothing asks for them outside."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_REGION": "eu-central-1",
        "NO_PROXY": "*",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def bucket(monkeypatch) -> Iterator[Bucket]:
    with Bucket() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.url)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def credentials(monkeypatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")


def place(size_limit: int = 10_000) -> Objects:
    return objects("s3://logs/shop/", os.environ, size_limit=size_limit)


def said(*messages: str, after: float = 0.0) -> list[LogLine]:
    return [LogLine(NOON + timedelta(seconds=after), "INFO", message) for message in messages]


@pytest.mark.usefixtures("credentials")
def test_each_batch_of_an_attempt_is_an_object_below_its_prefix_in_the_order_of_time(bucket):
    here = place()
    first = here.add(JOB, 2, said("begun", "half"), 0)
    second = here.add(JOB, 2, said("done ☃", after=0.5), 7)
    here.add(JOB, 4, said("again", after=9), 0)

    assert first == second == f"s3://logs/shop/9f/{JOB}.2/"
    assert list(bucket.kept) == [
        f"/logs/shop/9f/{JOB}.2/20260504T120000.000000Z.log",
        f"/logs/shop/9f/{JOB}.2/20260504T120000.500000Z.log",
        f"/logs/shop/9f/{JOB}.4/20260504T120009.000000Z.log",
    ]
    assert bucket.texts[0].splitlines() == [str(line) for line in said("begun", "half")]
    assert bucket.texts[1].splitlines()[0] == "… 7 lines were left out: too many at once"
    assert bucket.texts[1].endswith("done ☃\n")
    assert {heard["content-type"] for heard in bucket.heard} == {"text/plain; charset=utf-8"}
    assert bucket.lines == 1, "one line serves all of them"


@pytest.mark.usefixtures("credentials")
def test_a_line_that_the_store_has_closed_is_opened_again(bucket):
    bucket.hangs_up = True
    here = place()
    answers = [here.add(JOB, 2, said("one", after=second), 0) for second in range(3)]

    assert None not in answers
    assert (len(bucket.kept), bucket.lines) == (3, 3)


@pytest.mark.usefixtures("credentials")
def test_a_store_may_live_below_a_path_of_its_server(bucket, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"{bucket.url}/storage/s3/")
    place().add(JOB, 2, said("hello"), 0)

    assert list(bucket.kept) == [f"/storage/s3/logs/shop/9f/{JOB}.2/20260504T120000.000000Z.log"]


@pytest.mark.usefixtures("credentials")
def test_bodies_are_plain_for_stores_that_know_no_trailers(bucket):
    place().add(JOB, 2, said("hello"), 0)

    [heard] = bucket.heard
    assert not [
        name for name in heard if "trailer" in name or "checksum" in name or name == "content-encoding"
    ]


def test_credentials_come_from_wherever_boto3_finds_them_such_as_a_profile(bucket, monkeypatch, tmp_path):
    (tmp_path / "credentials").write_text(
        "[shop]\naws_access_key_id = AKIDPROFILE\naws_secret_access_key = s\naws_session_token = t-1\n"
    )
    monkeypatch.setenv("AWS_PROFILE", "shop")

    assert place().add(JOB, 2, said("hello"), 0) is not None
    [heard] = bucket.heard
    assert heard["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDPROFILE/")
    assert heard["x-amz-security-token"] == "t-1"


@pytest.mark.usefixtures("credentials")
def test_the_log_of_an_attempt_does_not_grow_for_ever_and_says_where_it_ends(bucket):
    here = place(size_limit=200)
    for second in range(9):
        here.add(JOB, 2, said("x" * 50, after=second), 0)
    here.add(UUID(int=7), 2, said("another attempt", after=99), 0)

    assert [text.encode() for text in bucket.texts[1:]].count(FULL) == 1
    assert len(bucket.kept) == 4, "two with lines, the end, and that of the other"


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize(
    ("trouble", "words", "tries"),
    [
        ("refused", "(AccessDenied) when calling the PutObject operation: not you", 1),
        ("unwell", "(AccessDenied) when calling the PutObject operation", 2),
        ("away", "Could not connect to the endpoint URL", 0),
    ],
)
def test_a_store_that_cannot_be_written_costs_the_whole_log_only_and_is_left_alone_for_a_while(
    bucket, monkeypatch, caplog, trouble, words, tries
):
    bucket.status = {"refused": 403, "unwell": 503, "away": 200}[trouble]
    if trouble == "away":
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://localhost:9")
    here = place()
    answers = [here.add(JOB, 2, said("one", after=second), 0) for second in range(3)]

    assert answers == [None] * 3
    [record] = [record for record in caplog.records if record.name == "rota.worker"]
    assert "the logs of jobs cannot be written to s3://logs at http://localhost:" in record.message
    assert words in record.message
    assert "it is tried again in 30 s. Look at the credentials" in record.message
    assert len(bucket.heard) == tries

    bucket.status, here._rests_until = 200, 0.0
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket.url)
    assert here.add(JOB, 2, said("back", after=60), 0) is not None


def test_missing_credentials_are_said_at_the_first_write_and_looked_for_again(bucket, monkeypatch, caplog):
    here = place()

    assert here.add(JOB, 2, said("one"), 0) is None
    [record] = [record for record in caplog.records if record.name == "rota.worker"]
    assert "Unable to locate credentials. Jobs run on" in record.message
    assert "AWS_PROFILE, or the role of the machine" in record.message
    assert not bucket.heard

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")
    assert here.add(JOB, 2, said("two", after=1), 0) is None, "it rests"
    here._rests_until = 0.0
    assert here.add(JOB, 2, said("three", after=2), 0) is not None


def test_settings_of_which_boto3_can_make_no_client_are_said_too_and_without_passwords(
    monkeypatch, tmp_path, caplog
):
    (tmp_path / "config").write_text("[default]\nendpoint_url = https://ann:hunter2@\n")

    assert place().add(JOB, 2, said("one"), 0) is None
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert place().add(JOB, 2, said("one"), 0) is None
    endpoint, profile = [record.message for record in caplog.records if record.name == "rota.worker"]
    assert "written to s3://logs: Invalid endpoint: https://ann:***@" in endpoint
    assert "written to s3://logs: The config profile (nobody) could not be found" in profile


@pytest.mark.req("D23")
@pytest.mark.usefixtures("credentials")
async def test_where_the_whole_log_of_an_attempt_is_stands_beside_its_newest_lines(bucket):
    store = MemoryStore()
    book = Logbook(store, log_place("s3://logs/shop"))
    run = Run(a_stored_job(), None, 0.0)
    for number in range(60):
        book.keep(run, logging.INFO, f"line {number}, password=hunter2")
    await book.flush()

    [tail] = await store.logs(run.job.id)
    assert (len(tail.lines), tail.written) == (50, 60)
    assert tail.location == f"s3://logs/shop/{run.job.id.hex[-2:]}/{run.job.id}.{run.job.version}/"
    [text] = bucket.texts
    assert len(text.splitlines()) == 60
    assert "hunter2" not in text


@pytest.mark.parametrize(
    ("location", "environment", "words"),
    [
        ("s3:///logs", {}, r"which names no bucket\. Write s3://bucket/prefix"),
        (
            "s3://bucket/logs",
            {"AWS_ENDPOINT_URL_S3": "minio:9000"},
            "AWS_ENDPOINT_URL_S3 is 'minio:9000'; write it like https://minio.example:9000",
        ),
        (
            "s3://bucket/logs",
            {"AWS_ENDPOINT_URL": "https://ann:pw@minio.example"},
            "AWS_ENDPOINT_URL has a name or a password in it",
        ),
    ],
)
def test_what_is_wrong_for_an_object_store_is_said_when_the_worker_starts(location, environment, words):
    with pytest.raises(ConfigError, match=words):
        objects(location, environment, size_limit=1)


def test_a_worker_without_boto3_says_at_its_start_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)

    with pytest.raises(ConfigError, match=r'boto3, .* is not installed.*`pip install "rota\[s3\]"`'):
        log_place("s3://bucket/logs")


WORKER = """
import asyncio, sys
from rota import Rota, current_job
from rota.worker import Worker

app = Rota("memory://")

@app.task
async def greet() -> None:
    current_job().log.info("hello")
    worker.stop()

worker = Worker(app)

async def main() -> None:
    await greet.enqueue()
    await worker.run()

asyncio.run(main())
print("LOADED", [name for name in sys.modules if name.split(".")[0] in ("boto3", "botocore", "s3transfer")])
"""


@pytest.mark.parametrize("location", ["", "file://{}/logs", "s3://logs/shop"])
def test_only_a_worker_that_writes_logs_to_s3_loads_boto3(location, tmp_path):
    """One that names s3 has something to write here, but no credentials: it ends well all the same."""
    around = {name: value for name, value in os.environ.items() if name != "ROTA_LOG_LOCATION"}
    if location:
        around["ROTA_LOG_LOCATION"] = location.format(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", WORKER], env=around, cwd=tmp_path, capture_output=True, text=True
    )

    to_s3 = location.startswith("s3:")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("LOADED []\n") != to_s3, done.stdout
    assert ("Unable to locate credentials" in done.stderr) == to_s3, "it has tried"
    assert len(list(tmp_path.glob("logs/*/*.log"))) == location.startswith("file:")
