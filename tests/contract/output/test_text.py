"""Texts that clients chose, in JSON, in HTML and in the labels of metrics."""

import html
import json
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from streaming.contract.output.text import escaped_json, html_text, json_text, label_text, printable
from tests.contract.output.hostile_texts import HOSTILE, hostile_texts, unprintable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("billing [a-z]\\d", "billing [a-z]\\d"),
        ("Zoë 東京", "Zoë 東京"),
        ("\x1b[2J", "\\u001b[2J"),
        ("a\u202eb\x9bc\nd", "a\\u202eb\\u009bc\\u000ad"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_controls_a_terminal_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(hostile_texts)
def test_json_has_no_control_characters_and_the_same_value(text: str) -> None:
    value = {text: [text, {"nested": text}]}
    for shown in (json_text(value), json_text(value, indent=2), escaped_json(msgspec.json.encode(value).decode())):
        assert unprintable(shown) == []
        assert json.loads(shown) == value


def test_an_argument_that_is_no_utf_8_becomes_json() -> None:
    assert json.loads(json_text({"group": "\udcff"})) == {"group": "\udcff"}


@given(hostile_texts)
def test_html_has_no_element_and_no_end_of_an_attribute(text: str) -> None:
    shown = html_text(text)
    assert not set(shown) & set("<>\"'")
    assert html.unescape(shown) == printable(text)


@pytest.mark.parametrize("texts", [("\x1b", "\\u001b"), ("\\", "\\\\"), (HOSTILE, printable(HOSTILE))])
def test_two_groups_have_two_series_whose_labels_have_no_control_characters(texts: tuple[str, str]) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("seconds", "Seconds.", ["group"], registry=registry)
    for text in texts:
        gauge.labels(label_text(text)).set(1)
    exposed = generate_latest(registry).decode()
    assert unprintable(exposed) == []
    (family,) = text_string_to_metric_families(exposed)
    assert len({sample.labels["group"] for sample in family.samples}) == 2


@pytest.mark.parametrize("function", [printable, html_text, label_text])
def test_ordinary_names_stay_as_they_are(function: Callable[[str], str]) -> None:
    assert function("billing-2.orders_eu") == "billing-2.orders_eu"
