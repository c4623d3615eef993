"""What docs/deploy.md says to type for spark-submit."""

import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from streaming.cli.commands import submitted
from tests.docs.console.lines import lines_of_other_programs
from tests.docs.markdown import ROOT


def test_the_program_for_spark_submit_is_where_the_line_finds_it_and_the_connector_fits() -> None:
    document = (ROOT / "docs" / "deploy.md").read_text()
    (line,) = (line for line in lines_of_other_programs(document) if line.startswith("spark-submit "))
    before, _, rest = line.partition('"$(python -c ')
    expression, _, options = rest.partition(')" ')
    (program,) = shlex.split(expression)
    printed = subprocess.check_output([sys.executable, "-c", program], text=True).strip()
    assert Path(printed).samefile(submitted.__file__)
    assert before.split()[-1].endswith(f":{version('pyspark')}")
    words = submitted.words_of_run({"spark.master": "yarn", "spark.driver.memory": "1g"}, options.split())
    assert words == ["run", "--master", "yarn", *options.split()]
