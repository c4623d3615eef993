"""`group-coordinator acls`: what it prints, and what it creates at the brokers."""

import json
import shlex
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner, Result

from streaming.cli.app import app
from streaming.contract.rights.table import ROLES
from streaming.embedded.broker import EmbeddedBroker
from tests.gateway.security.roles.cluster import SecuredCluster, printed, secured_cluster
from tests.gateway.support.certificate import Certificate


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["acls", *arguments])


def acls(*arguments: str) -> list[tuple[str, ...]]:
    """The ACLs as JSON: principal, resource, name, pattern, operation."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    keys = ("principal", "resource", "name", "pattern", "operation")
    return [tuple(acl[key] for key in keys) for acl in json.loads(result.stdout)]


def test_the_lines_for_kafkas_tool_are_the_same_acls() -> None:
    options = {"--topic": "topic", "--group": "group", "--transactional-id": "transactional id"}
    arguments = ("gateway", "client", "--topic", "orders", "--group", "billing-*", "--topic-prefix", "p-")
    parsed = []
    for line in run(*arguments, "-b", "b:9092", "--command-config", "admin.properties").stdout.splitlines():
        tool, *words = shlex.split(line)
        assert (tool, words[:5]) == (
            "kafka-acls.sh",
            ["--bootstrap-server", "b:9092", "--command-config", "admin.properties", "--add"],
        )
        pairs = list(zip(words[5::2], words[6::2], strict=True))
        given = dict(pairs)
        resource = next(option for option in options if option in given)
        pattern = given.get("--resource-pattern-type", "literal")
        parsed += [
            (given["--allow-principal"], options[resource], given[resource], pattern, value)
            for key, value in pairs
            if key == "--operation"
        ]
    assert sorted(parsed) == sorted(acls(*arguments))


def test_a_standby_has_the_principal_of_the_job_unless_it_is_given_its_own() -> None:
    assert acls("job", "standby") == acls("job")
    assert {acl[0] for acl in acls("job", "standby", "--principal", "job=User:one")} == {"User:one"}
    both = acls("job", "standby", "--principal", "standby=two")
    assert len(both) == 2 * len(acls("job"))
    assert {acl[0] for acl in both} == {"User:job", "User:two"}


def test_a_prefix_of_names_is_a_prefixed_pattern() -> None:
    assert ("User:client", "group", "billing-", "prefixed", "Read") in acls("client", "--group", "billing-*")
    assert ("User:client", "group", "*", "literal", "Read") in acls("client", "--group", "*")


def test_rights_to_the_users_own_need_names_but_for_a_gateway() -> None:
    result = run("client", "gateway")
    assert "--topic, client get no right to the users' topics" in result.stderr
    assert {acl[0] for acl in acls("client", "gateway")} == {"User:gateway"}
    assert ("User:gateway", "topic", "*", "literal", "Describe") in acls("gateway")


def test_a_gateway_for_some_topics_may_describe_those_of_the_coordinator_that_clients_may_read() -> None:
    def described(*arguments: str) -> set[str]:
        return {name for _, kind, name, _, operation in acls(*arguments) if (kind, operation) == ("topic", "Describe")}

    assert described("gateway") == {"*"}
    assert described("gateway", "--topic", "orders") == {"orders", "group-rejects", "group-rebalances"}


def test_no_role_has_two_rights_of_which_one_implies_the_other() -> None:
    for role in ROLES:
        rights = {(acl[1], acl[2], acl[4]) for acl in acls(role, "--topic", "t", "--group", "g")}
        for kind, name, operation in rights:
            if operation in ("Read", "Write"):
                assert (kind, name, "Describe") not in rights, (role, name)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nobody",), "'nobody' is not one of: job, standby,"),
        (("job", "--principal", "nobody=User:x"), "'nobody' is not one of: job, standby,"),
        (("job", "--execute"), "--execute needs --apply"),
        (("job", "--apply"), "--apply needs --bootstrap-servers"),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.jvm
def test_brokers_without_an_authorizer_have_no_acls(broker: EmbeddedBroker) -> None:
    result = run("job", "-b", broker.bootstrap_servers, "--apply", "--execute")
    assert result.exit_code == 1
    assert "has no authorizer" in result.stderr


@pytest.fixture(scope="module")
def cluster(certificate: Certificate) -> Iterator[SecuredCluster]:
    """With the ACLs of one role."""
    with secured_cluster(certificate, []) as started:
        yield started


@pytest.mark.jvm
def test_acls_are_shown_and_with_execute_those_that_are_missing_are_created(cluster: SecuredCluster) -> None:
    def states(*arguments: str) -> list[str]:
        result = run(*arguments, "-b", cluster.open_address, "--apply", "--json")
        assert result.exit_code == 0, result.output
        return [acl["state"] for acl in json.loads(result.stdout)]

    reader, publisher = len(printed("reader")), len(printed("publisher"))
    shown = run("reader", "-b", cluster.open_address, "--apply")
    assert "Nothing was changed: this was a dry run. --execute creates 2 ACLs." in shown.stdout
    assert states("reader") == ["missing"] * reader
    assert states("reader", "--execute") == ["created"] * reader
    assert states("reader", "publisher") == ["exists"] * reader + ["missing"] * publisher
    assert "The brokers have all of these ACLs." in run("reader", "-b", cluster.open_address, "--apply").stdout


@pytest.mark.jvm
def test_a_user_without_rights_on_the_cluster_is_told_so(cluster: SecuredCluster) -> None:
    refused = cluster.command("job", "acls", "job", "--apply")
    assert refused.exit_code == 1
    assert "do not allow this user Describe on the cluster" in refused.stderr
