"""Nodes of Solana.

`rpc` is the port's side, `jsonrpc` one call and what its failure means, `bucket` how many calls may go.
"""

from tempa.adapters.chains.solana.rpc import SolanaRpc

__all__ = ["SolanaRpc"]
