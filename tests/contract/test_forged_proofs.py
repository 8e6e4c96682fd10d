"""Proofs of credit that somebody has altered: what is noticed by the key, and what without it."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import string
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tempa.settlement.attestation import Attestor
from tempa.settlement.check import Checked, check_proof
from tests.contract.shop import TERMS, Shop
from tests.contract.test_proofs import ATTESTOR, proof
from tests.contract.test_stores import folder, on_sqlite  # noqa: F401 - a fixture


@pytest.fixture
async def lite(folder: Path, request: pytest.FixtureRequest) -> AsyncIterator[Shop]:  # noqa: F811
    async with on_sqlite(request) as bench:
        yield Shop(bench)


async def honest(shop: Shop) -> dict[str, Any]:
    gpu = await shop.instance()
    quote = await shop.quote(gpu)
    await shop.pays(601, quote)
    signature = await shop.pays(1_801, quote, memos=("for Ana",))
    await shop.pays(300)
    return await proof(shop, signature)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a document has plain values."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))
    else:
        yield path


def altered(value: Any) -> Any:
    match value:
        case bool() | None:
            return "x"
        case int():
            return value + 1
        case str() if value.isdecimal():
            return str(int(value) + 1)
        case str():
            return "0" * 64 if len(value) == 64 else value + "x"
    raise AssertionError(value)


# What nothing else in a document depends on: names and times for people, and terms that no sum uses.
FREE = {
    ("verifier",),
    ("lock_tolerance_seconds",),  # a longer one makes nothing late
    ("evidence", 0, "node"),
    ("evidence", 1, "node"),
    ("credits", 0, "posted_at_ms"),  # the block has a time
    ("quotes", 0, "gpu_instance_id"),
    ("quotes", 0, "decimals"),
    ("quotes", 0, "created_at_ms"),
    ("quotes", 0, "expires_at_ms"),
    ("ledger", "receipts", "size"),  # a path may fit lists of several sizes: the deployment signs the size
    ("attestation",),
    ("made_at_ms",),
}


def unnoticed_in(document: dict[str, Any], public_key: str | None) -> set[tuple[Any, ...]]:
    """Where a value can be altered, or left out, and the proof still holds."""
    assert isinstance(check_proof(document, public_key), Checked)
    unnoticed = set()
    for path in places(document):
        for change in (altered, lambda _: None):
            forged = copy.deepcopy(document)
            at = forged
            for key in path[:-1]:
                at = at[key]
            before, at[path[-1]] = at[path[-1]], change(at[path[-1]])
            if at[path[-1]] != before and isinstance(check_proof(forged, public_key), Checked):
                unnoticed.add(path)
    return unnoticed


async def test_no_value_of_a_signed_proof_can_be_altered(lite: Shop) -> None:
    """Not one, whether anything depends on it or not; and nothing can be left out, doubled or added."""
    document = await honest(lite)

    assert unnoticed_in(document, ATTESTOR.public_key) == set()
    for path in branches(document):
        for change in (emptied, doubled, widened):
            forged = copy.deepcopy(document)
            at = forged
            for key in path:
                at = at[key]
            if change(at):
                assert isinstance(check_proof(forged, ATTESTOR.public_key), list), (path, change)


async def test_a_signature_has_one_form(lite: Shop) -> None:
    """The last digit of Base64 has bits that a lenient reader drops."""
    document = await honest(lite)
    signed = document["attestation"]["signature"]
    digits = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
    other = signed[:85] + digits[digits.index(signed[85]) + 1] + "=="
    assert base64.b64decode(other) == base64.b64decode(signed)

    document["attestation"]["signature"] = other

    assert isinstance(check_proof(document, ATTESTOR.public_key), list)


def branches(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a document has lists and objects; itself first."""
    if isinstance(value, dict | list):
        yield path
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from branches(value[key], (*path, key))


def emptied(at: Any) -> bool:
    was = bool(at)
    at.clear()
    return was


def doubled(at: Any) -> bool:
    if isinstance(at, list):
        at.extend(copy.deepcopy(at))
    return isinstance(at, list) and bool(at)


def widened(at: Any) -> bool:
    """By a name that no reader knows."""
    if isinstance(at, dict) and "public_key" not in at:  # what is beside a signature is not signed
        at["surplus"] = 1
        return True
    return False


async def test_a_credit_whose_entry_is_not_shown_does_not_hold(lite: Shop) -> None:
    """However it came to be hidden: the seconds are as many as the document likes then."""
    document = {**await honest(lite), "attestation": None}
    for entry in document["entries"]:
        entry["body"] = None
    thousandfold = {"numerator": 1_000, "denominator": 2}
    (part,), (quote,) = document["credits"][0]["allocations"], document["quotes"]
    part |= {"price": thousandfold, "seconds": 500 * 1_801, "earlier": {"legs": [], "seconds": 0}}
    quote |= {"price": thousandfold, "seconds": 3_600_000}

    problems = check_proof(document)

    assert isinstance(problems, list)
    words = "No entry of the journal that can be read tells of the receipt."
    assert problems == [("/credits/0", words)]


@pytest.mark.parametrize("name", ["evidence", "credits", "quotes", "entries"])
async def test_nothing_counts_twice(lite: Shop, name: str) -> None:
    document = {**await honest(lite), "attestation": None}
    document[name] += copy.deepcopy(document[name][:1])

    problems = check_proof(document)

    assert isinstance(problems, list)
    assert (f"/{name}/{len(document[name]) - 1}", "It stands there twice.") in problems


async def test_what_came_out_of_suspense_counts_once(lite: Shop) -> None:
    quote = await lite.quote(await lite.instance(), seconds=1_800)
    signature = await lite.pays(3_600)
    (anomaly,) = await lite.bench.store.anomalies(10, None)
    await lite.bench.store.resolve_anomaly(anomaly.id, "Ana called", TERMS, quote.id)
    document = {**await proof(lite, signature), "attestation": None}
    assert isinstance(check_proof(document), Checked)
    (part,) = document["credits"][0]["allocations"]

    document["credits"][0]["allocations"] = [part, part]

    problems = check_proof(document)
    assert isinstance(problems, list)
    assert ("/credits/0/allocations/1", "No entry of the journal tells of it.") in problems


async def test_without_a_key_a_proof_says_whose_word_it_is(lite: Shop) -> None:
    document = await honest(lite)

    by_itself, with_key = check_proof(document), check_proof(document, ATTESTOR.public_key)

    assert isinstance(by_itself, Checked)
    assert isinstance(with_key, Checked)
    assert (by_itself.signed_by, with_key.signed_by) == (None, ATTESTOR.public_key)
    assert any("No key was given" in remark for remark in by_itself.remarks)
    assert with_key.remarks == ()


async def test_of_an_unsigned_proof_only_what_nothing_depends_on_can_be_altered(lite: Shop) -> None:
    """Not even by the deployment itself: the document is not signed here."""
    document = {**await honest(lite), "attestation": None}
    unnoticed = unnoticed_in(document, None)
    treasury = {path for path in unnoticed if path[0] == "treasury"}
    # Rows that this payment did not come to, and the rest of a row that the answer says nothing of.
    assert all(path[2] != 1 or path[3] == "extensions" for path in treasury if path[1] == "accounts")
    assert unnoticed - treasury - FREE == set()


def forge(document: dict[str, Any], change: Callable[[dict[str, Any]], None]) -> list[str]:
    forged = copy.deepcopy(document)
    change(forged)
    problems = check_proof(forged)
    assert isinstance(problems, list), "it was taken for genuine"
    return [f"{problem.place}: {problem.words}" for problem in problems]


async def test_what_is_wrong_is_said_in_words(lite: Shop) -> None:
    document = await honest(lite)

    def more_money(forged: dict[str, Any]) -> None:
        """With the answers' hashes to match."""
        for told in forged["evidence"]:
            told["answer"] = told["answer"].replace('"amount":"1901"', '"amount":"2901"')
            told["sha256"] = hashlib.sha256(told["answer"].encode()).hexdigest()

    def failed(forged: dict[str, Any]) -> None:
        for told in forged["evidence"]:
            told["answer"] = told["answer"].replace('"err":null', '"err":{"InstructionError":[0,"Custom"]}')
            told["sha256"] = hashlib.sha256(told["answer"].encode()).hexdigest()

    def no_answer(forged: dict[str, Any]) -> None:
        forged["evidence"] = []

    def other_head(forged: dict[str, Any]) -> None:
        forged["ledger"]["head"]["number"] += 1

    def other_price(forged: dict[str, Any]) -> None:
        forged["credits"][0]["allocations"][0]["price"]["denominator"] = 1

    assert any(
        "By the answer of one, 2801 came in and not 1801" in words for words in forge(document, more_money)
    )
    assert any("nothing was paid: transaction_failed" in words for words in forge(document, failed))
    assert any("No node's answer" in words for words in forge(document, no_answer))
    assert any("signature is not of this document" in words for words in forge(document, other_head))
    assert any("not taken at the quote's price" in words for words in forge(document, other_price))


async def test_seconds_beyond_what_the_sum_buys_are_found_even_where_the_journal_says_so(lite: Shop) -> None:
    """A deployment that grants too little books it consistently, and is found by the quote's own terms."""
    document = await honest(lite)
    (part,) = document["credits"][0]["allocations"]
    assert part["seconds"] == 1_201 - 300
    assert part["earlier"] == {
        "legs": [{"price": {"numerator": 1, "denominator": 2}, "paid": "601"}],
        "seconds": 300,
    }

    part["seconds"] -= 1

    problems = check_proof(document)
    assert isinstance(problems, list)
    assert ("/credits/0/allocations/0/seconds", "It buys 901 s and not 900.") in problems


async def test_the_signature_is_the_deployments(lite: Shop) -> None:
    document = await honest(lite)
    other = Attestor(b"o" * 32)
    signed = document["attestation"]

    assert isinstance(check_proof(document, ATTESTOR.public_key), Checked)
    assert isinstance(check_proof(document, other.public_key), list)
    assert isinstance(check_proof({**document, "attestation": None}, ATTESTOR.public_key), list)
    assert isinstance(check_proof({**document, "made_at_ms": document["made_at_ms"] + 1}), list)
    # Another implementation of the same words: RFC 8785 of what the document's model names.
    claim = {name: value for name, value in document.items() if name != "attestation"}
    plain = json.dumps(claim, sort_keys=True, separators=(",", ":"))
    statement = {
        "cluster": document["treasury"]["cluster"],
        "document_sha256": hashlib.sha256(plain.encode()).hexdigest(),
        "format": document["format"],
        "ledger": document["ledger"],
        "made_at_ms": document["made_at_ms"],
    }
    message = json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(signed["public_key"]))
    key.verify(base64.b64decode(signed["signature"]), message)


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "",
        {},
        {"format": "tempa-proof-of-credit/1"},
        {"format": 7},
        {"credits": [{"receipt": None}]},
    ],
)
def test_what_is_no_proof_is_said_to_be_none(document: Any) -> None:
    problems = check_proof(document)

    assert isinstance(problems, list)
    assert all("This is no proof" in problem.words for problem in problems)


ODD: list[Any] = [
    None,
    [],
    {},
    -1,
    0,
    2**63,
    2**70,
    1.5,
    float("inf"),
    True,
    "",
    "\ud800",
    "-1",
    "9" * 30,
    [[]] * 3,
    {"a": {}},
]


async def test_whatever_a_document_holds_it_is_judged_and_nothing_breaks(lite: Shop) -> None:
    document = await honest(lite)
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]
    for path in places(document):
        for odd in [*ODD, deep]:
            forged = copy.copy(document)
            at: Any = forged
            for key in path[:-1]:
                at[key] = copy.copy(at[key])
                at = at[key]
            at[path[-1]] = odd
            assert isinstance(check_proof(forged), list | Checked)
