"""An S3 server: versitygw, which keeps each bucket in a folder, and each object in a file of it."""

from pathlib import Path

from streaming.embedded.ports import free_address
from tests.support.processes import Process
from tests.support.tools.go_tools import go_program

MODULE, VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"
ACCESS_KEY, SECRET_KEY = "an-access-key", "a-secret-key"


class S3Server(Process):
    """The server; ``folder`` has a folder for each bucket. As a context manager, it is killed at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = free_address()
        keys = ["--access", ACCESS_KEY, "--secret", SECRET_KEY]
        super().__init__(
            "S3 server", [go_program(MODULE, VERSION), "--port", self.address, *keys, "posix", str(folder)]
        )

    def bucket(self, name: str) -> Path:
        """Make a bucket; returns its folder. A name has at least three characters."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        return folder

    def start(self) -> None:
        """Start it, and return when it listens."""
        super().start()
        self.await_line("that it listens", lambda line: "listening" in line)

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
