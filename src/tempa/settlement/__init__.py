"""SLICE payment -> rental: what the chain shows at finality is credited once, to its own quote."""
