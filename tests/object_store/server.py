"""An S3 server: versitygw, which keeps each bucket in a folder, and each object in a file of it."""

import subprocess
from pathlib import Path
from typing import NamedTuple

from streaming.embedded.ports import free_address
from tests.support.processes import Process
from tests.support.tools.go_tools import go_program

MODULE, VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"
ACCESS_KEY, SECRET_KEY = "an-access-key", "a-secret-key"

KEYS = ("--access", ACCESS_KEY, "--secret", SECRET_KEY)

ADMIN_LIMIT_SECONDS = 60.0


class Request(NamedTuple):
    """A request that the server has got."""

    method: str
    path: str


class S3Server(Process):
    """The server; ``folder`` has a folder for each bucket. As a context manager, it is killed at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = free_address()
        self._users = folder.with_name(f"{folder.name}-users")
        given = ["--port", self.address, "--iam-dir", str(self._users)]
        super().__init__("S3 server", [go_program(MODULE, VERSION), *given, *KEYS, "posix", str(folder)])

    def bucket(self, name: str) -> Path:
        """Make a bucket; returns its folder. A name has at least three characters."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        return folder

    def add_user(self, access_key: str, secret_key: str) -> None:
        """Add a user who may do what the policies of buckets allow."""
        admin = [go_program(MODULE, VERSION), "admin", *KEYS, "--endpoint-url", f"http://{self.address}"]
        user = ["create-user", "--access", access_key, "--secret", secret_key, "--role", "user"]
        subprocess.run([*admin, *user], check=True, capture_output=True, timeout=ADMIN_LIMIT_SECONDS)

    def start(self) -> None:
        """Start it, and return when it listens."""
        self._users.mkdir(exist_ok=True)
        super().start()
        self.await_line("that it listens", lambda line: "listening" in line)

    def requests(self, begin: int = 0) -> list["Request"]:
        """The requests since this line of the output."""
        logged = (line.split("|") for line in self.output[begin:])
        return [Request(fields[5].strip(), fields[6].strip()) for fields in logged if len(fields) > 6]

    @property
    def options(self) -> dict[str, str]:
        """The job's options with which it finds the server."""
        return {
            "spark.hadoop.fs.s3a.endpoint": f"http://{self.address}",
            # Else the bucket's name becomes part of the host's name.
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.access.key": ACCESS_KEY,
            "spark.hadoop.fs.s3a.secret.key": SECRET_KEY,
        }
