"""The file of the ACLs of groups: what it takes, and one line for each fault."""

import re
from pathlib import Path

import pytest

from streaming.contract.errors import CannotRun
from streaming.contract.rights import acl_file
from streaming.contract.rights.acl_file import read_group_acls
from streaming.contract.rights.group_acls import GroupAcl
from streaming.contract.rights.table import Operation

RIGHT = """
[[acls]]
principal = "User:billing"
group = "billing-"
pattern-type = "prefixed"
operations = ["Read", "Delete"]

[[acls]]
principal = "User:*"
group = "*"
operations = ["Describe"]
"""

OPERATIONS = "one of: Read, Describe, Delete, DescribeConfigs, AlterConfigs, All"


def written(folder: Path, content: str) -> str:
    file = folder / "acls.toml"
    file.write_text(content)
    return str(file)


def faults(folder: Path, content: str) -> list[str]:
    """The lines about a file, without what is the same in each of them."""
    file = written(folder, content)
    with pytest.raises(CannotRun) as refused:
        read_group_acls(file)
    lines = str(refused.value).splitlines()
    assert all(line.startswith(f"group-acl-file {file}") for line in lines)
    return [line.removeprefix(f"group-acl-file {file}").removeprefix(":").strip() for line in lines]


def test_a_rule_has_a_principal_a_group_and_operations(tmp_path: Path) -> None:
    assert read_group_acls(written(tmp_path, RIGHT)).rules == (
        GroupAcl(principal="User:billing", group="billing-", pattern_type="prefixed", operations=("Read", "Delete")),
        GroupAcl(principal="User:*", group="*", operations=("Describe",)),
    )


def test_the_example_of_the_guide_can_be_read(tmp_path: Path) -> None:
    guide = (Path(__file__).resolve().parents[2] / "docs" / "security.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    billing, operator = read_group_acls(written(tmp_path, example)).rules
    assert billing.allows(Operation.READ, "billing-orders")
    assert operator.allows(Operation.DELETE, "any")


def test_every_fault_of_every_rule_has_a_line_that_says_what_is_possible(tmp_path: Path) -> None:
    wrong = """
        [[acls]]
        principal = "billing"
        group = ""
        pattern-type = "regex"
        operations = ["Reed", 3, "Write"]
        host = "10.0.0.1"
        [[acls]]
        principal = "User:billing"
        group = 5
        operations = "Read"
        [[acls]]
        """
    assert faults(tmp_path, wrong) == [
        "rule 1: there is no key 'host', only principal, group, operations, pattern-type",
        "rule 1: principal: 'billing' is not User:NAME, or User:* for every principal",
        "rule 1: group: '' is not a group id, a prefix of group ids, or * for every group",
        f"rule 1: operations: 'Reed' is not {OPERATIONS}",
        f"rule 1: operations: 3 is not {OPERATIONS}",
        f"rule 1: operations: 'Write' is not {OPERATIONS}",
        "rule 1: pattern-type: 'regex' is not one of: literal, prefixed",
        "rule 2: group: 5 is not a group id, a prefix of group ids, or * for every group",
        f"rule 2: operations: 'Read' is not a list of operations, {OPERATIONS}",
        "rule 3: principal is missing",
        "rule 3: group is missing",
        "rule 3: operations is missing",
    ]


@pytest.mark.parametrize("content", ["", "# none yet", "acls = 3", "acls = []", "acls = [1]"])
def test_a_file_without_rules_is_refused(tmp_path: Path, content: str) -> None:
    assert faults(tmp_path, content) == ["has no rules; begin each rule with [[acls]]"]


def test_another_table_is_refused(tmp_path: Path) -> None:
    assert faults(tmp_path, RIGHT + "[acl]\n") == ["there is no key 'acl'; begin each rule with [[acls]]"]


def test_an_empty_list_of_operations_is_refused(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, RIGHT.replace('["Describe"]', "[]"))
    assert fault == f"rule 2: operations: [] is not a list of operations, {OPERATIONS}"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match=r"^group-acl-file .*missing.toml cannot be read: No such file or directory$"):
        read_group_acls(str(tmp_path / "missing.toml"))
    assert faults(tmp_path, "[[acls]")[0].startswith("is not TOML: ")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(CannotRun, match="is not TOML"):
        read_group_acls(str(tmp_path / "bytes.toml"))


def test_more_rules_than_a_record_of_a_topic_holds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_file, "MAX_RULES_BYTES", 100)
    (fault,) = faults(tmp_path, RIGHT)
    assert fault.startswith("its 2 rules take ")
    assert "at most 100" in fault
