"""The cluster: slots, blocks, forks, and which transactions may land. One chain of live blocks, one tip.

cluster = Cluster()
signature = cluster.submit(raw)      # in the tip, thus processed
cluster.tick(32)                     # finalized under tower
cluster.fork(cluster.tip.slot - 3)   # what landed in the last three slots is forgotten, and can land again
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from typing import TYPE_CHECKING

from solders.hash import Hash

from tempa.testing.devchain.admission import (
    decoded,
    durable_nonce,
    message_bytes,
    nonce_account_index,
    preflight_fault,
)
from tempa.testing.devchain.bank import Bank
from tempa.testing.devchain.blocks import Block, Commitment, Landed, Mode

if TYPE_CHECKING:
    from collections.abc import Callable

    from solders.account import Account
    from solders.pubkey import Pubkey
    from solders.transaction import VersionedTransaction

BLOCKHASH_BLOCKS = 150
TOWER_SLOTS = 32
_FIRST_SLOT = 1_000
_EARLIER_BLOCKS = 64  # empty ones, so that something is final from the start
_HEIGHT_BEHIND = 100  # slots that were skipped before our time: heights and slots must not be mistaken
_EPOCH_SECONDS = 1_790_000_000  # block times without a clock: the same in every run


class Cluster:
    """All state of the chain. Not for several threads."""

    def __init__(
        self,
        *,
        mode: Mode = Mode.TOWER,
        slot_ms: int = 400,
        clock: Callable[[], float] | None = None,
        seed: str = "",
    ) -> None:
        self.bank = Bank()
        self.mode = mode
        self.slot_ms = slot_ms
        self.seed = seed
        self.holding = False
        """While true, what is sent waits in the pool."""
        self.pool: dict[str, bytes] = {}
        """What was held back or forgotten with its fork, by signature."""
        self.listeners: list[Callable[[], None]] = []
        self.block_time: Callable[[int], int | None] = self._plain_time if clock is None else _told_by(clock)
        self._blocks: list[Block] = []
        self._landed: dict[str, Landed] = {}
        self._messages: set[bytes] = set()
        self._histories: dict[str, list[Landed]] = {}
        self._hashes: dict[Hash, Block] = {}
        self._next_slot = _FIRST_SLOT
        for _ in range(_EARLIER_BLOCKS + 1):
            self._open_block()
        self.alpenglow_since = self.tip.slot if mode is Mode.ALPENGLOW else None

    @property
    def genesis_hash(self) -> str:
        """Tells this cluster from all others."""
        return str(Hash(hashlib.sha256(f"tempa dev chain {self.seed}".encode()).digest()))

    @property
    def tip(self) -> Block:
        """The block that transactions land in now."""
        return self._blocks[-1]

    @property
    def first_slot(self) -> int:
        """The oldest slot that is kept."""
        return self._blocks[0].slot

    def set_mode(self, mode: Mode) -> None:
        """Change consensus; what was final stays final."""
        if mode is Mode.ALPENGLOW and self.alpenglow_since is None:
            self.alpenglow_since = self.tip.slot
        self.mode = mode
        self._changed()

    def tick(self, slots: int = 1, *, skip: int = 0) -> None:
        """Let so many blocks pass, after `skip` slots that nobody made a block in."""
        self._next_slot += skip
        for _ in range(slots):
            self._open_block()
            self._changed()

    def expire(self) -> None:
        """Let every blockhash that is known now grow too old."""
        self.tick(BLOCKHASH_BLOCKS + 1)

    def submit(self, raw: bytes, *, skip_preflight: bool = False) -> str:
        """Send a transaction; its signature. Raises RpcFault.

        Without preflight, one that cannot land is taken and lost, as on the real chain.
        """
        transaction = decoded(raw)
        signature = str(transaction.signatures[0])
        if not skip_preflight:
            self._preflight(transaction)
        if self.holding:
            self.pool[signature] = raw
        elif self._refusal(transaction) is None:
            self._land(signature, raw, transaction)
        return signature

    def land(self, signature: str) -> bool:
        """Let one of the pool land, now. False if it cannot any more. Raises KeyError if it is not there."""
        raw = self.pool.pop(signature)
        transaction = decoded(raw)
        return self._refusal(transaction) is None and self._land(signature, raw, transaction)

    def drop(self, signature: str) -> None:
        """Lose one of the pool for good. Raises KeyError."""
        del self.pool[signature]

    def fork(self, slot: int) -> list[str]:
        """Abandon all blocks above `slot`, and build on that one. What was in them goes to the pool.

        Raises ValueError for what is final, or not there.
        """
        if not self.block(Commitment.FINALIZED).slot <= slot < self.tip.slot:
            raise ValueError(f"slot {slot} is final, or not behind the tip")
        gone = []
        while self.tip.slot > slot:
            block = self._blocks.pop()
            del self._hashes[block.blockhash]
            gone += [self._forget(landed) for landed in reversed(block.landed)]
        self._open_block()
        self._changed()
        return gone[::-1]

    def block(self, commitment: Commitment, lag_slots: int = 0) -> Block:
        """The newest block of a commitment, as a node sees it that is so many slots behind."""
        tip = self.newest(self.tip.slot - lag_slots)
        if commitment is Commitment.PROCESSED:
            return tip
        confirmed = self.newest(tip.slot - 1)
        if commitment is Commitment.CONFIRMED:
            return confirmed
        by_tower = self.newest(tip.slot - TOWER_SLOTS)
        if self.mode is Mode.TOWER or self.alpenglow_since is None:
            return by_tower
        return confirmed

    def newest(self, slot: int) -> Block:
        """The newest block not above `slot`; the first, if all are."""
        at = bisect_right(self._blocks, slot, key=lambda block: block.slot)
        return self._blocks[max(at - 1, 0)]

    def blocks(self, above: int, up_to: int) -> list[Block]:
        """The live blocks with above < slot <= up_to."""
        first = bisect_right(self._blocks, above, key=lambda block: block.slot)
        last = bisect_right(self._blocks, up_to, key=lambda block: block.slot)
        return self._blocks[first:last]

    def find(self, signature: str) -> Landed | None:
        """None if it has not landed on the live fork."""
        return self._landed.get(signature)

    def history(self, address: str) -> list[Landed]:
        """What named an address, oldest first."""
        return self._histories.get(address, [])

    def account(self, key: Pubkey, slot: int) -> Account | None:
        """An account as it was at the end of `slot`."""
        later = None
        for landed in reversed(self.history(str(key))):
            if landed.slot <= slot:
                break
            later = landed
        if later is None:
            return self.bank.account(key)
        return later.execution.before[later.execution.keys.all.index(key)]

    def lives(self, blockhash: Hash, block: Block) -> bool:
        """Whether a blockhash is young enough at `block`."""
        known = self._hashes.get(blockhash)
        return known is not None and 0 <= block.height - known.height <= BLOCKHASH_BLOCKS

    def _preflight(self, transaction: VersionedTransaction) -> None:
        refusal = self._refusal(transaction)
        if refusal is not None:
            raise preflight_fault(refusal)
        err, meta = self.bank.simulate(transaction)
        if err is not None:
            raise preflight_fault(err, meta)

    def _refusal(self, transaction: VersionedTransaction) -> str | None:
        """Why it can have no place in the tip, by its signatures, age and lookup tables."""
        if message_bytes(transaction) in self._messages:
            return "AlreadyProcessed"
        if not self.lives(transaction.message.recent_blockhash, self.tip) and not self._is_durable(
            transaction
        ):
            return "BlockhashNotFound"
        try:
            self.bank.keys(transaction)
        except LookupError:
            return "AddressLookupTableNotFound"
        return None

    def _is_durable(self, transaction: VersionedTransaction) -> bool:
        index = nonce_account_index(transaction)
        if index is None:
            return False
        nonce = durable_nonce(self.bank.account(transaction.message.account_keys[index]))
        return nonce == bytes(transaction.message.recent_blockhash)

    def _land(self, signature: str, raw: bytes, transaction: VersionedTransaction) -> bool:
        execution = self.bank.execute(transaction)
        if execution.err is not None and execution.before[0] == execution.after[0]:
            return False  # nobody paid the fee: a leader would not have taken it
        landed = Landed(signature, raw, execution, self.tip, len(self.tip.landed))
        self.tip.landed.append(landed)
        self._landed[signature] = landed
        self._messages.add(message_bytes(transaction))
        for key in dict.fromkeys(execution.keys.all):
            self._histories.setdefault(str(key), []).append(landed)
        self._changed()
        return True

    def _forget(self, landed: Landed) -> str:
        self.bank.take_back(landed.execution)
        del self._landed[landed.signature]
        self._messages.remove(message_bytes(landed.execution.transaction))
        for key in dict.fromkeys(landed.execution.keys.all):
            self._histories[str(key)].pop()
        self.pool[landed.signature] = landed.raw
        return landed.signature

    def _open_block(self) -> None:
        slot, self._next_slot = self._next_slot, self._next_slot + 1
        parent = self._blocks[-1] if self._blocks else None
        height = _FIRST_SLOT - _HEIGHT_BEHIND if parent is None else parent.height + 1
        parent_slot = slot - 1 if parent is None else parent.slot
        told = f"{self.genesis_hash} {slot} {parent_slot}"
        time = self.block_time(slot)
        block = Block(slot, height, Hash(hashlib.sha256(told.encode()).digest()), parent_slot, time)
        self._blocks.append(block)
        self._hashes[block.blockhash] = block
        self.bank.at(slot, self._plain_time(slot) if time is None else time)

    def _plain_time(self, slot: int) -> int:
        return _EPOCH_SECONDS + (slot - _FIRST_SLOT) * self.slot_ms // 1000

    def _changed(self) -> None:
        for listener in self.listeners:
            listener()


def _told_by(clock: Callable[[], float]) -> Callable[[int], int | None]:
    return lambda _slot: int(clock())
