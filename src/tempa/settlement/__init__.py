"""SLICE payment -> rental: what the chain shows at finality is credited once, to the invoice it was made for."""
