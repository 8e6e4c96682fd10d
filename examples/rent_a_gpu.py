"""A job on a rented GPU: refused, quoted, paid for, done. `python rent_a_gpu.py GPU_INSTANCE_ID`.

Pay the Solana Pay URL that it prints with a wallet; on a development chain with `tempa dev pay QUOTE_ID`.
"""

from __future__ import annotations

import sys
import time

from tempa.client import Client, TempaProblem
from tempa.settlement.wire import QuoteView


def rent(tempa: Client, gpu_instance_id: str) -> str:
    """The id of the completed job."""
    request = {
        "engine": "opencascade-brep",
        "export_format": "step",
        "parameters": {"outer_diameter": 120.5, "inner_diameter": 45.0, "length": 300.0},
        "gpu_instance_id": gpu_instance_id,
    }
    try:
        job = tempa.submit(request)
    except TempaProblem as refused:
        if refused.slug != "rental-required" or "quote" not in refused.extra:
            raise
        wait_until_paid(tempa, QuoteView.model_validate(refused.extra["quote"]))
        job = tempa.submit(request)
    return job.wait().job_id


def wait_until_paid(tempa: Client, quote: QuoteView) -> None:
    """The server finds the payment by itself: there is nothing to call after it."""
    print(f"{quote.quote_id}: pay {quote.solana_pay_url}", flush=True)
    while quote.status not in {"credited", "late"}:
        if quote.status in {"suspense", "expired"}:
            sys.exit(f"{quote.status}: {quote.message}")
        time.sleep(1)
        quote = tempa.quote(quote.quote_id)
    print(f"{quote.granted_seconds} s are paid for, by {quote.signature}", flush=True)


if __name__ == "__main__":
    with Client() as client:
        print(f"{rent(client, sys.argv[1])} is completed")
