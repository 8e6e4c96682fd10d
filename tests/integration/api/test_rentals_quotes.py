"""Quotes over real HTTP, on the real store: how they are paid, and how far their payment is."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import zxingcpp

from tempa.core import base58
from tempa.settlement.quotes import QuoteSighting
from tempa.settlement.reasons import REASONS
from tempa.settlement.rentals import GRANT_SECONDS_MAX
from tempa.settlement.wire import QuoteView
from tempa.testing.contracts.samples import OTHER_ACCOUNT
from tempa.testing.contracts.settlement_steps import MINT, WALLET, a_signature, an_address
from tests.integration.api.renting import INSTANCES, QUOTES, Renting, offered, quoted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

    from tests.integration.api.conftest import Served


@pytest.fixture
def renting(served: Served) -> Renting:
    return Renting(served)


@pytest.fixture
async def http(renting: Renting) -> AsyncIterator[httpx2.AsyncClient]:
    async with renting.client() as client:
        yield client


@pytest.fixture
async def other(renting: Renting) -> AsyncIterator[httpx2.AsyncClient]:
    async with renting.client("payments", account=OTHER_ACCOUNT) as client:
        yield client


@pytest.fixture
async def gpu(http: httpx2.AsyncClient) -> str:
    made: str = (await offered(http))["id"]
    return made


async def looked_at(http: httpx2.AsyncClient, quote: dict[str, Any]) -> dict[str, Any]:
    answer = await http.get(f"{QUOTES}/{quote['quote_id']}")
    assert answer.status_code == 200
    view: dict[str, Any] = answer.json()
    QuoteView.model_validate(view)
    return view


def told(view: dict[str, Any], *names: str) -> list[Any]:
    return [view[name] for name in names]


def recently(at: str) -> bool:
    return abs((datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()) < 60


def drawn(svg: bytes) -> np.ndarray[Any, Any]:
    """The modules of a QR code, each 8 pixels wide: a reader of the one path that it is drawn by.

    `m` moves on, `M` to a place, `h` draws to the right; each line is one module high.
    """
    root = ET.fromstring(svg)  # noqa: S314 - our own drawing
    assert all(element.tag.endswith(("svg", "g", "path", "title")) for element in root.iter())
    (path,) = (element for element in root.iter() if "stroke" in element.attrib)
    side = int(root.attrib["width"]) // 4
    picture = np.full((side, side), 255, np.uint8)
    text = path.attrib["d"]
    for letter in "Mmh":
        text = text.replace(letter, f" {letter} ")
    words, x, y = iter(text.split()), 0.0, 0.0
    for word in words:
        if word == "h":
            width = float(next(words))
            picture[int(y), int(x) : int(x + width)] = 0
            x += width
        else:
            step = float(next(words)), float(next(words))
            x, y = step if word == "M" else (x + step[0], y + step[1])
    return picture.repeat(8, axis=0).repeat(8, axis=1)


async def test_a_quote_says_how_to_pay_it(http: httpx2.AsyncClient, gpu: str) -> None:
    answer = await http.post(QUOTES, json={"gpu_instance_id": gpu, "asset": MINT, "seconds": 90})

    made = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{QUOTES}/{made['quote_id']}"
    assert (await http.get(answer.headers["location"])).json() == made
    begin, end = (datetime.fromisoformat(made[name]) for name in ("created_at", "expires_at"))
    assert (end - begin).total_seconds() == 900
    assert recently(made["created_at"])
    assert base58.is_address(made["reference"])
    names = (
        "gpu_instance_id",
        "asset",
        "decimals",
        "seconds",
        "amount",
        "price",
        "treasury",
        "status",
        "paid",
    )
    assert told(made, *names) == [
        gpu,
        MINT,
        6,
        90,
        "180",
        {"numerator": 1, "denominator": 2},
        WALLET,
        "open",
        "0",
    ]
    assert told(made, "seen", "final", "credited", "signature", "reason") == [None] * 5


@pytest.mark.parametrize(
    ("asset", "seconds", "user_units"),
    [
        ("SOL", 3_600, Decimal("0.5")),
        ("SOL", 1, Decimal("0.000138889")),  # 500,000,000 / 3,600 lamports, rounded up
        (MINT, 90, Decimal("0.00018")),
        (MINT, 500_000, Decimal(1)),
    ],
)
async def test_its_url_is_a_transfer_request_of_solana_pay(
    http: httpx2.AsyncClient, gpu: str, asset: str, seconds: int, user_units: Decimal
) -> None:
    """As its specification has it, by another reader of URLs: amounts in user units, the wallet to pay."""
    made = await quoted(http, gpu, seconds, asset)

    url = urlsplit(made["solana_pay_url"])
    fields = parse_qs(url.query, strict_parsing=True)
    assert (url.scheme, url.path) == ("solana", made["treasury"])
    assert [Decimal(text) for text in fields["amount"]] == [user_units]
    assert Decimal(made["amount"]) == user_units * 10 ** made["decimals"]
    assert fields["amount"][0].strip("0123456789.") == ""
    assert fields["reference"] == [made["reference"]]
    assert fields.get("spl-token", ["SOL"]) == [asset]
    assert fields["memo"] == [f"tempa:{made['quote_id']}"]
    assert set(fields) <= {"amount", "spl-token", "reference", "label", "message", "memo"}


async def test_its_qr_code_is_that_url(http: httpx2.AsyncClient, gpu: str) -> None:
    made = await quoted(http, gpu, 3_600)

    answer = await http.get(f"{QUOTES}/{made['quote_id']}/qr")

    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
    (code,) = zxingcpp.read_barcodes(drawn(answer.content))
    assert (code.format, code.text) == (zxingcpp.BarcodeFormat.QRCode, made["solana_pay_url"])


async def test_a_quote_is_its_accounts_alone(
    http: httpx2.AsyncClient, other: httpx2.AsyncClient, gpu: str
) -> None:
    path = f"{QUOTES}/{(await quoted(http, gpu, 60))['quote_id']}"

    assert [(await other.get(each)).status_code for each in (path, f"{path}/qr")] == [404, 404]
    assert (await other.get(QUOTES)).json() == {"items": [], "next_cursor": None}


@pytest.mark.parametrize("quote_id", ["quo_00000000000000000000000000", "gpu_1", "x" * 5000])
async def test_an_unknown_quote_is_not_found(http: httpx2.AsyncClient, quote_id: str) -> None:
    answers = [await http.get(f"{QUOTES}/{quote_id}"), await http.get(f"{QUOTES}/{quote_id}/qr")]

    assert [answer.status_code for answer in answers] == [404, 404]


async def test_quotes_are_listed_newest_first_page_by_page(http: httpx2.AsyncClient, gpu: str) -> None:
    made = [await quoted(http, gpu, seconds) for seconds in range(1, 6)]
    seen: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await http.get(QUOTES, params={"limit": 2, **({"cursor": cursor} if cursor else {})})).json()
        seen += page["items"]
        cursor = page["next_cursor"]

    assert seen == made[::-1]


@pytest.mark.parametrize(
    ("fields", "pointers"),
    [
        ({"gpu_instance_id": None}, ["/gpu_instance_id"]),
        ({"asset": "sol"}, ["/asset"]),
        ({"seconds": 0}, ["/seconds"]),
        ({"seconds": -1}, ["/seconds"]),
        ({"seconds": "60"}, ["/seconds"]),
        ({"seconds": GRANT_SECONDS_MAX + 1}, ["/seconds"]),
        ({"amount": "1"}, ["/amount"]),
        ({"asset": "", "seconds": True}, ["/asset", "/seconds"]),
    ],
)
async def test_what_is_wrong_with_a_request_is_told_all_at_once(
    http: httpx2.AsyncClient, gpu: str, fields: dict[str, Any], pointers: list[str]
) -> None:
    answer = await http.post(QUOTES, json={"gpu_instance_id": gpu, "asset": MINT, "seconds": 60, **fields})

    assert answer.status_code == 422
    assert [problem["pointer"] for problem in answer.json()["errors"]] == pointers


async def test_an_asset_without_a_price_names_those_with_one(http: httpx2.AsyncClient, gpu: str) -> None:
    ask = {"gpu_instance_id": gpu, "asset": an_address(), "seconds": 60}

    (problem,) = (await http.post(QUOTES, json=ask)).json()["errors"]

    assert (problem["pointer"], problem["limit"]) == ("/asset", f"SOL, {MINT}")


async def test_a_server_that_takes_no_payments_says_which_settings_it_needs(
    renting: Renting, http: httpx2.AsyncClient, gpu: str
) -> None:
    ask = {"gpu_instance_id": gpu, "asset": MINT, "seconds": 60}
    renting.treasury = None
    not_yet = await http.post(QUOTES, json=ask)
    renting.lock_for(900, takes_payments=False)
    never = await http.post(QUOTES, json=ask)

    assert (not_yet.status_code, not_yet.json()["code"]) == (503, "TREASURY_UNKNOWN")
    assert int(not_yet.headers["retry-after"]) > 0
    assert (never.status_code, never.json()["code"]) == (501, "PAYMENTS_NOT_CONFIGURED")
    assert "solana.treasury" in never.json()["detail"]


async def test_a_key_needs_the_scope(renting: Renting, gpu: str) -> None:
    async with renting.client("jobs:write", "jobs:read", "webhooks") as keyed:
        answers = [
            await keyed.post(QUOTES, json={"gpu_instance_id": gpu, "asset": MINT, "seconds": 60}),
            await keyed.get(QUOTES),
        ]
        open_to_all = await keyed.get(f"{INSTANCES}/{gpu}")

    assert [(answer.status_code, answer.json()["scope"]) for answer in answers] == [(403, "payments")] * 2
    assert open_to_all.status_code == 200


async def test_a_payment_is_followed_from_its_first_word_to_its_time(
    renting: Renting, http: httpx2.AsyncClient, gpu: str
) -> None:
    quote, signature = await quoted(http, gpu, 3_600), a_signature()

    async def hear(slot: int, *, is_final: bool) -> dict[str, Any]:
        sighting = QuoteSighting(quote["reference"], "", slot, signature, is_final)
        assert await renting.served.store.note_progress([sighting]) == 1
        return await looked_at(http, quote)

    seen = await hear(41, is_final=False)
    final = await hear(42, is_final=True)
    await renting.pay(quote, 7_200, signature=signature, slot=43)
    credited = await looked_at(http, quote)

    assert [one["status"] for one in (seen, final, credited)] == ["seen", "final", "credited"]
    assert [credited[name]["slot"] for name in ("seen", "final", "credited")] == [41, 42, 43]
    assert all(recently(credited[name]["at"]) for name in ("seen", "final", "credited"))
    assert told(seen, "final", "credited", "signature") == [None, None, signature]
    assert told(credited, "paid", "granted_seconds", "signature", "reason") == [
        "7200",
        3_600,
        signature,
        None,
    ]
    assert len({one["message"] for one in (quote, seen, final, credited)}) == 4


async def test_what_came_short_says_so_until_the_rest_comes(
    renting: Renting, http: httpx2.AsyncClient, gpu: str
) -> None:
    """At two base units a second: 6,001 buy 3,000 s, and with 1,199 more all 3,600."""
    quote = await quoted(http, gpu, 3_600)

    await renting.pay(quote, 6_001)
    short = await looked_at(http, quote)
    await renting.pay(quote, 1_199)
    whole = await looked_at(http, quote)

    assert told(short, "status", "paid", "granted_seconds") == ["partial", "6001", 3_000]
    assert told(whole, "status", "paid", "granted_seconds") == ["credited", "7200", 3_600]


async def test_a_quote_that_nobody_paid_expires_and_late_money_buys_all_the_same(
    renting: Renting, http: httpx2.AsyncClient, gpu: str
) -> None:
    """After its lock and a minute more the price is that of the day: three base units a second."""
    renting.lock_for(0)
    quote = await quoted(http, gpu, 3_600)
    expired = await looked_at(http, quote)
    await http.patch(f"{INSTANCES}/{gpu}", json={"prices": [{"asset": MINT, "amount": "3", "seconds": 1}]})
    end = int(datetime.fromisoformat(quote["expires_at"]).timestamp())
    await renting.pay(quote, 7_200, block_time=end + 61)
    late = await looked_at(http, quote)

    assert told(expired, "status", "reason") == ["expired", None]
    assert "new quote" in expired["message"]
    assert told(late, "status", "paid", "granted_seconds") == ["late", "7200", 2_400]


async def test_money_that_waits_says_why(
    renting: Renting, http: httpx2.AsyncClient, other: httpx2.AsyncClient, gpu: str
) -> None:
    """Both were quoted while it was free; the other paid first."""
    mine, theirs = await quoted(http, gpu, 60), await quoted(other, gpu, 60)
    await renting.pay(theirs, 120, account=OTHER_ACCOUNT)
    receipt = await renting.pay(mine, 120)

    view = await looked_at(http, mine)

    names = ("status", "reason", "paid", "granted_seconds", "signature")
    assert told(view, *names) == ["suspense", "instance_rented", "0", 0, receipt.signature]
    assert view["message"] == REASONS["instance_rented"].words
