"""Java, the jars, and how the job runs on the installed pyspark."""

from collections.abc import Iterator

from streaming.cli.checks.finding import Finding, note, ok, problem
from streaming.cli.extras import missing_modules
from streaming.contract.distribution import installed_version
from streaming.embedded.jars import Jars, MissingPrerequisite, cached_jars, java_executable, reported_version
from streaming.job.spark_internals.python_worker.worker_choice import ARROW, STOCK, choose

JAVA, JARS, ARCHIVE, WORKER, INTERNALS = "Java", "jars", "class archive", "Python worker", "Spark internals"


def check_runtime(python_worker: str) -> Iterator[Finding]:
    """Findings about the job's JVM and its Python worker. ``python_worker`` is the job's option of this name."""
    if missing_modules("job"):
        for check in (JAVA, JARS, ARCHIVE, WORKER, INTERNALS):
            yield note(check, "not checked: only the job needs it, and the extra job is not installed")
        return
    yield _check_java()
    yield from _check_jars()
    yield _check_worker(python_worker)
    yield _check_internals()


def _check_java() -> Finding:
    try:
        java = java_executable()
        return ok(JAVA, f"{reported_version(java)} at {java}")
    except MissingPrerequisite as missing:
        return _of_missing(JAVA, missing)


def _check_jars() -> Iterator[Finding]:
    try:
        jars = cached_jars()
        if jars is None:
            download = "to download them now: python -m streaming.embedded.jars"
            yield note(JARS, "not downloaded; the first start downloads them, which needs a network", download)
        else:
            folder = jars.connector[0].parent.parent
            yield ok(JARS, f"{len(jars.connector)} for Spark and {len(jars.broker)} for a broker, in {folder}")
            yield _check_archive(jars)
    except MissingPrerequisite as missing:
        yield _of_missing(JARS, missing)


def _check_archive(jars: Jars) -> Finding:
    from streaming.job.session import extra_class_path
    from streaming.job.spark_internals.class_archive import class_archive

    archive = class_archive(extra_class_path(jars))
    if archive is None:
        make = "to make it: python -m streaming.job.make_class_archive"
        return note(ARCHIVE, "none; with it, a start takes two thirds of the time", make)
    return ok(ARCHIVE, str(archive))


def _of_missing(check: str, missing: MissingPrerequisite) -> Finding:
    reason, _, advice = str(missing).partition(": ")
    return problem(check, reason, advice)


def _check_worker(python_worker: str) -> Finding:
    choice = choose(python_worker, installed_version("pyspark") or "of an unknown version")
    if choice.worker == STOCK and python_worker == ARROW:
        return problem(WORKER, choice.why, "expect slower batches, or install the pyspark of the extra job")
    return ok(WORKER, choice.why)


def _check_internals() -> Finding:
    """Check the names in pyspark that the job uses. Java's classes are checked when the job starts."""
    from streaming.job.spark_internals.registry import INTERNALS as USES
    from streaming.job.spark_internals.registry import reason_to_leave_out

    unused = {use: reason for use in USES if (reason := reason_to_leave_out(use)) is not None}
    if not unused:
        return ok(INTERNALS, f"all {len(USES)} can be used")
    detail = "; ".join(f"without {use.name} ({reason}): {use.without}" for use, reason in unused.items())
    return problem(INTERNALS, detail, "expect this, or install the pyspark of the extra job")
