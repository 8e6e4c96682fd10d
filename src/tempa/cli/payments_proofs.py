"""`tempa payments proof`, `verify-proof`: what shows that a payment was credited, and whether it holds."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempa.cli import connect
from tempa.cli.exits import FAULT, CommandFault, UsageFault
from tempa.cli.output import Json, note, print_json, wants_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.settlement.check import Checked
    from tempa.settlement.ports import Chain
    from tempa.settlement.proof_parts import Problem

_PROOF_BYTES_MAX = 64 * 1024 * 1024

RpcUrls = Annotated[
    list[str] | None,
    typer.Option("--rpc-url", metavar="URL", help="A node that is asked, too. Once for each."),
]


def proof(
    signature: Annotated[str, typer.Argument(metavar="SIGNATURE", help="The transaction that paid.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to. (default: standard output)"),
    ] = None,
) -> None:
    """Fetch the proof of a payment's credit: for whoever does not trust the server."""
    with connect.open_client() as tempa:
        document = tempa.proof(signature)
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if output is None:
        print(text, end="")
        return
    output.write_text(text, encoding="utf-8")
    note(f"{output} is written. Anybody can check it: tempa payments verify-proof {output}")


def verify_proof(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The proof; - reads stdin.")],
    key: Annotated[
        str | None,
        typer.Option(
            metavar="BASE64", help="The server's public key, from elsewhere: it has to have signed."
        ),
    ] = None,
    rpc_url: RpcUrls = None,
    as_json: Json = False,
) -> None:
    """Say whether a proof holds; if not, all that is wrong with it. Exit code 1: it does not.

    Without --key the quote's terms, and so the price, are the document's word. By itself it asks nobody:
    no server and no chain. With --rpc-url each node's own answer has to show the same.
    """
    from tempa.settlement.check import Checked, check_proof

    document = _read(file)
    found = check_proof(document, key)
    if isinstance(found, Checked) and rpc_url:
        import asyncio  # 40 ms that `tempa --help` need not spend

        problems = asyncio.run(_on_chain(document, found.signature, rpc_url))
        found = problems or found
    _print(found, list(rpc_url or ()), as_json)
    if not isinstance(found, Checked):
        raise typer.Exit(FAULT)


def _read(file: Path) -> Any:
    try:
        raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise UsageFault(f"{file} cannot be read: {error.strerror}.") from None
    if len(raw) > _PROOF_BYTES_MAX:
        raise UsageFault(f"A proof has {_PROOF_BYTES_MAX // 1024**2} MiB at most; this has {len(raw)} bytes.")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UsageFault(f"{file} is not JSON: {error}") from None


async def _on_chain(document: dict[str, Any], signature: str, urls: list[str]) -> list[Problem]:
    """What is wrong by the nodes' own answers, each put in the place of those that the proof shows."""
    from tempa.cli.payments_nodes import open_nodes

    treasury = document["treasury"]
    problems: list[Problem] = []
    async with open_nodes(None, urls, treasury["accounts"][0]["owner"]) as payments:
        for node in payments.nodes:
            problems += await _by_node(document, signature, treasury["cluster"], node)
    return problems


async def _by_node(document: dict[str, Any], signature: str, cluster: str, node: Chain) -> list[Problem]:
    from tempa.settlement.check import Checked, check_proof
    from tempa.settlement.ports import NotFound, Trouble
    from tempa.settlement.proof_parts import Problem

    genesis = await node.genesis_hash()
    answer = await node.get_transaction(signature)
    for told in (genesis, answer):
        if isinstance(told, Trouble):
            raise CommandFault(f"{told.node} cannot be asked: {told.reason} {told.detail}".rstrip() + ".")
    if genesis != cluster:
        return [Problem("/treasury/cluster", f"{node.name} is of another chain.")]
    if isinstance(answer, NotFound):
        return [Problem("/signature", f"{node.name} shows no such transaction at finality.")]
    assert not isinstance(answer, Trouble)
    asked = {"evidence": [_evidence(node.name, answer.answer)], "attestation": None}  # it was checked before
    again = check_proof({**document, **asked})
    return [] if isinstance(again, Checked) else again


def _evidence(node: str, answer: Mapping[str, Any]) -> dict[str, str]:
    text = json.dumps(answer, separators=(",", ":"))
    return {"node": node, "answer": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def _print(found: Checked | list[Problem], urls: list[str], as_json: bool) -> None:
    from tempa.settlement.check import Checked

    if wants_json(as_json):
        print_json(_document(found, urls))
        return
    if not isinstance(found, Checked):
        print("The proof does NOT hold:")
        print("\n".join(f"  {one.place or '(the whole)'}: {one.words}" for one in found))
        return
    asked = f" {len(urls)} of the chain's nodes asked now show the same." if urls else ""
    credited = f"{found.signature} was credited with {found.seconds} s"
    if found.signed_by is None:
        print(f"The proof holds as far as the answers and the journal in it tell: {credited}.{asked}")
        print("  the price of the seconds is the document's word: no --key was given")
    else:
        print(f"The proof holds, all of it signed by the key given: {credited}.{asked}")
    print(f"  by the answers of {', '.join(found.nodes)}")
    print(f"  all receipts had the root {found.receipts_root}")
    for remark in found.remarks:
        print(f"  note: {remark}")


def _document(found: Checked | list[Problem], urls: list[str]) -> dict[str, Any]:
    from tempa.settlement.check import Checked

    if not isinstance(found, Checked):
        return {"holds": False, "problems": [{"place": one.place, "words": one.words} for one in found]}
    return {
        "holds": True,
        "signature": found.signature,
        "seconds": found.seconds,
        "nodes": list(found.nodes),
        "nodes_asked_now": len(urls),
        "signed_by": found.signed_by,
        "receipts_root": found.receipts_root,
        "remarks": list(found.remarks),
    }
