"""An offline Solana for tests and demos: `tempa dev chain`."""
