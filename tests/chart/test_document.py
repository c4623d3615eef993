"""What docs/deploy.md says to type: Helm renders its values, and kubectl makes the Secrets that they name."""

import base64
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.chart.commands import rendered_commands
from tests.chart.helm import CHART, KUBERNETES_VERSION, Values, run_helm
from tests.chart.test_commands import options_of
from tests.docs.console.lines import lines_of_other_programs, words_of
from tests.docs.markdown import ROOT

DOCUMENT = (ROOT / "docs" / "deploy.md").read_text()
HELM_LINES = [line for line in lines_of_other_programs(DOCUMENT) if line.startswith("helm ")]
SECRET_LINES = [line for line in lines_of_other_programs(DOCUMENT) if line.startswith("kubectl create secret ")]

NEEDS_A_RELEASE = "helm rollback"
"""The beginning of the line that has no values."""

SECRET_FILES = {
    "store.env": "AWS_ACCESS_KEY_ID=an-access-key\nAWS_SECRET_ACCESS_KEY=a-secret-key\n",
    "jaas.conf": 'org.apache.kafka.common.security.scram.ScramLoginModule required username="job" password="x";',
    "password": "a-password",
    "ca.pem": "a certificate",
}
"""The files from which the document makes Secrets."""


def documented_values() -> Values:
    """The values that the document gives."""
    (text,) = re.findall(r"```yaml\n# values\.yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    values: Values = yaml.safe_load(text)
    return values


@pytest.mark.parametrize("line", [line for line in HELM_LINES if not line.startswith(NEEDS_A_RELEASE)])
def test_helm_renders_each_line(line: str, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(documented_values()))
    line = line.replace("deploy/chart", str(CHART)).replace("values.yaml", str(values))
    # An installation and an upgrade need a cluster; a template takes the same words.
    words = words_of(re.sub(r"^helm upgrade(?: --install)? ", "helm template ", line))
    done = run_helm(*words[1:], "--kube-version", KUBERNETES_VERSION)
    assert done.returncode == 0, done.stderr


def test_only_the_way_back_has_no_values() -> None:
    (line,) = [line for line in HELM_LINES if line.startswith(NEEDS_A_RELEASE)]
    help_text = run_helm("rollback", "--help").stdout
    assert "helm rollback <RELEASE> [REVISION]" in help_text
    assert words_of(line)[2:] == ["coordinator", "--namespace", "kafka"]


def test_the_secrets_that_kubectl_makes_have_what_the_values_name(tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    for name, text in SECRET_FILES.items():
        (tmp_path / name).write_text(text)
    secrets = {}
    for line in SECRET_LINES:
        words = [kubectl, *words_of(line)[1:], "--dry-run=client", "--output", "yaml"]
        made = yaml.safe_load(subprocess.check_output(words, cwd=tmp_path, text=True))
        secrets[made["metadata"]["name"]] = {
            key: base64.b64decode(value).decode() for key, value in made["data"].items()
        }
    commands = rendered_commands(documented_values(), secrets)
    assert [each.container for each in commands] == ["job", "gateway"]
    assert all("/etc/group-coordinator/kafka/ca.pem" in each.files for each in commands)


def test_the_options_of_the_values_exist(tmp_path: Path) -> None:
    secrets = {
        "store": {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"},
        "kafka-job": {"jaas.conf": SECRET_FILES["jaas.conf"]},
        "kafka-gateway": {"password": SECRET_FILES["password"]},
        "kafka-files": {"ca.pem": SECRET_FILES["ca.pem"]},
    }
    (job,), (gateway,) = options_of(documented_values(), tmp_path, secrets)
    assert job.librdkafka_config["sasl.username"] == "job"
    assert job.java_client_config["security.protocol"] == gateway.kafka["security.protocol"] == "SASL_SSL"
    assert gateway.kafka["sasl.password"] == "a-password"
