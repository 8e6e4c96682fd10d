"""The signer with the treasury's own key, on a chain; and what is not signed, or not kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from solders.keypair import Keypair
from solders.pubkey import Pubkey

from tempa.adapters.payments.keypair import KeypairSigner
from tempa.settlement.model import TreasuryAccount
from tempa.settlement.ports import Trouble
from tempa.settlement.refund_order import deviation, order_of, row_of
from tempa.settlement.refunds import Outcome, RefundState, Signed, fault_of
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.faults import Fault
from tempa.testing.devchain.programs import TOKEN, TOKEN_2022, associated_account
from tempa.testing.devchain.wallet import keypair
from tests.integration.chains.test_refunds import FINAL_SLOTS, LAMPORTS, House, house  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from solders.instruction import Instruction

    from tempa.settlement.refunds import Refund

DECIMALS = 6


def signer_of(house: House) -> KeypairSigner:  # noqa: F811 - the fixture
    return KeypairSigner(house.chain.treasury.pair, house.nodes)


async def carried_out(house: House, refund: Refund) -> Refund:  # noqa: F811
    """By the real signer, to the end."""
    refunder = house.refunder(signer=signer_of(house))
    for _ in range(5):
        await refunder.round()
        house.chain.cluster.tick(FINAL_SLOTS)
    ended = await house.now(refund)
    assert ended.state is RefundState.FINAL
    return ended


async def test_sol_goes_to_the_wallet_that_was_named_with_a_memo(house: House) -> None:  # noqa: F811
    refund = await house.sol()

    ended = await carried_out(house, refund)

    assert house.paid(refund) == LAMPORTS
    history = await house.nodes[0].signatures_for_address(refund.destination)
    assert not isinstance(history, Trouble)
    assert [row.signature for row in history] == [ended.signings[0].signature]
    assert history[0].memo == f"[{13 + len(refund.id)}] tempa:refund:{refund.id}"


@pytest.mark.parametrize("program", [TOKEN, TOKEN_2022])
@pytest.mark.parametrize("is_open", [False, True])
async def test_tokens_of_both_programs_go_to_the_wallets_own_account(
    house: House,  # noqa: F811
    program: Pubkey,
    is_open: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    chain = house.chain
    payer, treasury = chain.payer, chain.treasury
    mint = payer.mint("other", decimals=2, program=program)
    source = payer.give(mint, payer.key, 10_000, program)
    account = payer.give(mint, treasury.key, 0, program)
    row = TreasuryAccount(
        asset=str(mint), address=str(account), owner=str(treasury.key), program=str(program), decimals=2
    )
    house.quorum.treasury = replace(house.quorum.treasury, accounts=(row,))
    refund = await house.suspended(make.pay(source, account, payer.key, 777, program))
    wallet = Pubkey.from_string(refund.destination)
    if is_open:
        payer.give(mint, wallet, 5, program)

    await carried_out(house, refund)

    state = chain.cluster.bank.account(associated_account(wallet, mint, program))
    assert state is not None
    assert int.from_bytes(state.data[64:72], "little") == 777 + (5 if is_open else 0)
    assert state.owner == program


async def test_what_a_signer_gives_is_held_against_what_was_asked(house: House) -> None:  # noqa: F811
    """Transactions that a wallet would sign, none of which is this refund."""
    refund = await house.sol()
    row = row_of(refund, house.quorum.treasury)
    assert isinstance(row, TreasuryAccount)
    order = order_of(refund, row)
    wallet, target = house.chain.treasury, Pubkey.from_string(refund.destination)
    thief, memo = Keypair().pubkey(), make.memo(f"tempa:refund:{refund.id}")
    right = make.pay_sol(wallet.key, target, LAMPORTS)

    def found(*steps: Instruction, **how: Any) -> str | None:
        return deviation(wallet.signed(*steps, **how), order)

    assert found(memo, right) is None
    assert "instruction 2" in str(found(memo, make.pay_sol(wallet.key, thief, LAMPORTS)))
    assert "instruction 2" in str(found(memo, make.pay_sol(wallet.key, target, LAMPORTS + 1)))
    assert "instruction 1" in str(found(make.memo("tempa:refund:another"), right))
    assert "3 instructions" in str(found(memo, right, right))
    assert "1 instructions" in str(found(right))
    assert "others sign" in str(found(memo, right, fee_payer=house.chain.payer.pair))
    assert deviation(b"\1\2\3", order) is not None


async def test_tokens_to_another_account_or_of_another_amount_are_not_kept(house: House) -> None:  # noqa: F811
    refund = await house.token()
    row = row_of(refund, house.quorum.treasury)
    assert isinstance(row, TreasuryAccount)
    order = order_of(refund, row)
    chain, wallet, target = house.chain, house.chain.treasury, Pubkey.from_string(refund.destination)
    memo, thief = make.memo(f"tempa:refund:{refund.id}"), Keypair().pubkey()

    def found(owner: Pubkey, amount: int) -> str | None:
        account = associated_account(owner, chain.mint)
        source = wallet.account(chain.mint)
        moved = make.pay_checked(source, chain.mint, account, wallet.key, amount, DECIMALS)
        return deviation(
            wallet.signed(memo, make.open_associated(wallet.key, owner, chain.mint), moved), order
        )

    assert found(target, refund.amount) is None
    assert "instruction 3" in str(found(target, refund.amount + 1))
    assert "instruction 2" in str(found(thief, refund.amount))


async def test_a_signer_that_pays_somebody_else_is_never_heard(house: House) -> None:  # noqa: F811
    refund = await house.sol()
    house.desk.amount_off = 1
    for _ in range(3):
        await house.refunder().round()
        house.chain.cluster.tick(FINAL_SLOTS)

    stands = await house.now(refund)

    assert (stands.state, stands.signings) == (RefundState.REQUESTED, ())
    assert house.paid(refund) == 0
    assert house.landed() == 0


async def test_another_wallets_key_signs_nothing(house: House) -> None:  # noqa: F811
    refund = await house.sol()
    signer = KeypairSigner(keypair("wallet", "thief"), house.nodes)
    order = order_of(refund, house.quorum.treasury.accounts[0])

    assert isinstance(await signer.sign(refund, order), Trouble)


async def test_the_next_node_is_asked_where_one_is_away(house: House) -> None:  # noqa: F811
    refund = await house.sol()
    order = order_of(refund, house.quorum.treasury.accounts[0])
    away = [Fault("http", status=502, times=9)]
    house.chain.nodes[0].faults["getLatestBlockhash"] = list(away)
    signed = await signer_of(house).sign(refund, order)
    for node in house.chain.nodes:
        node.faults["getLatestBlockhash"] = list(away)

    assert isinstance(signed, Signed)
    assert (fault_of(signed), deviation(signed.raw, order)) == (None, None)
    assert isinstance(await signer_of(house).sign(refund, order), Trouble)


# What the chain shows against it


async def test_a_ledger_from_a_backup_does_not_pay_again(house: House) -> None:  # noqa: F811
    """What was sent after the backup is known to the chain alone."""
    refund = await house.sol()
    order = order_of(refund, house.quorum.treasury.accounts[0])
    signed = await signer_of(house).sign(refund, order)  # nothing of it is on disk
    assert isinstance(signed, Signed)
    await house.nodes[0].send(signed.raw)
    house.chain.cluster.tick(FINAL_SLOTS)

    refunder = house.refunder(signer=signer_of(house))
    for _ in range(4):
        await refunder.round()
        house.chain.cluster.tick(FINAL_SLOTS)

    assert (await house.now(refund)).state is RefundState.REQUESTED
    assert house.paid(refund) == LAMPORTS
    assert (await house.store.anomaly_counts())["refund_sent_before"] == 1
    assert await house.store.give_up_refund(refund.id, "it was paid before the backup") is not None


async def test_one_node_that_shows_it_outvotes_those_that_hide_it(house: House) -> None:  # noqa: F811
    refund = await house.sol()
    signed = await signer_of(house).sign(refund, order_of(refund, house.quorum.treasury.accounts[0]))
    assert isinstance(signed, Signed)
    await house.nodes[0].send(signed.raw)
    house.chain.cluster.tick(FINAL_SLOTS)
    for number in (0, 1):
        house.chain.nodes[number].lag_slots = FINAL_SLOTS

    await house.refunder(signer=signer_of(house)).round()

    assert (await house.now(refund)).state is RefundState.REQUESTED
    assert "refund_sent_before" in await house.store.anomaly_counts()


async def test_while_too_few_nodes_tell_of_the_past_nothing_is_signed(house: House) -> None:  # noqa: F811
    refund = await house.sol()
    for number in (0, 1):
        node = house.chain.nodes[number]
        node.faults["getSignaturesForAddress"] = [Fault("http", status=502, times=1)]
    refunder = house.refunder(signer=signer_of(house))

    await refunder.round()
    waits = await house.now(refund)
    await carried_out(house, refund)

    assert (waits.state, waits.signings) == (RefundState.REQUESTED, ())


@pytest.mark.parametrize("place", ["a token account", "a mint", "an account that no key has"])
async def test_nothing_goes_to_what_is_no_wallet(house: House, place: str) -> None:  # noqa: F811
    chain = house.chain
    addresses = {
        "a token account": chain.payer.account(chain.mint),
        "a mint": chain.mint,
        "an account that no key has": associated_account(Keypair().pubkey(), chain.mint),
    }
    first = await house.sol()
    assert await house.store.give_up_refund(first.id, "to another address") is not None
    refund = await house.asked(first.anomaly_id, str(addresses[place]))

    for _ in range(3):
        await house.refunder(signer=signer_of(house)).round()
        chain.cluster.tick(FINAL_SLOTS)

    assert (await house.now(refund)).signings == ()
    assert "refund_no_wallet" in await house.store.anomaly_counts()


async def test_it_is_paid_from_an_account_that_is_still_the_treasurys(house: House) -> None:  # noqa: F811
    refund = await house.sol()
    treasury = house.quorum.treasury
    row = treasury.accounts[0]

    assert row_of(refund, treasury) == row
    assert "another chain" in str(row_of(refund, replace(treasury, cluster="other")))
    assert "not the treasury's" in str(row_of(refund, replace(treasury, accounts=treasury.accounts[1:])))
    frozen = replace(row, refusal="account_frozen")
    assert "account_frozen" in str(row_of(refund, replace(treasury, accounts=(frozen,))))
    for own in (row.address, treasury.accounts[1].address):
        assert "itself" in str(row_of(replace(refund, destination=own), treasury))


async def test_what_is_given_up_meanwhile_is_not_kept(house: House) -> None:  # noqa: F811
    """Signed, and given up before it was on disk: nobody ever has the bytes."""
    refund = await house.sol()
    signed = await signer_of(house).sign(refund, order_of(refund, house.quorum.treasury.accounts[0]))
    assert isinstance(signed, Signed)
    assert await house.store.give_up_refund(refund.id, "not him") is not None

    assert not await house.store.keep_signing(refund.id, signed)
    assert not await house.store.note_sent(refund.id, signed.signature)
    assert await house.store.end_signing(refund.id, signed.signature, Outcome.FINAL) is None
