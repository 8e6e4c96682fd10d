"""Every bound at the door, with its reason. `limits.*` settings override; `GET /v1/limits` shows."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tempa.core.accounts import RATE_MIN

KIB, MIB = 1024, 1024 * 1024


class Limits(BaseModel):
    """What one request may ask for. Sizes in bytes, lengths in millimetres, times in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # A request is parameters, not geometry: the largest feature tree allowed fits well inside.
    json_body_bytes: int = Field(MIB, ge=KIB)
    # STEP files beyond this need more memory than an attempt has.
    upload_bytes: int = Field(256 * MIB, ge=KIB)
    image_megapixels: int = Field(64, ge=1)
    image_bytes: int = Field(32 * MIB, ge=KIB)
    # The kernel's tolerance is 1e-7 mm: below 1e-3 mm its results were measured wrong by 22 %.
    length_min: float = Field(1e-3, gt=0)
    length_max: float = Field(1e6, gt=0)
    difference_min: float = Field(1e-3, gt=0)
    holes_max: int = Field(1024, ge=1)
    tree_nodes_max: int = Field(2000, ge=1)
    export_formats_max: int = Field(8, ge=1)
    num_gaussians_min: int = Field(1024, ge=1)
    num_gaussians_max: int = Field(1_048_576, ge=1)
    # Proxies cut idle requests at 30 to 60 s.
    wait_seconds_max: int = Field(30, ge=1)
    page_max: int = Field(200, ge=1)
    webhook_body_bytes: int = Field(256 * KIB, ge=KIB)
    # Each is looked at for each of its account's events.
    endpoints_per_account: int = Field(100, ge=0)
    tags_max: int = Field(32, ge=0)
    tag_name_length_max: int = Field(64, ge=1)
    tag_value_length_max: int = Field(256, ge=1)
    url_length_max: int = Field(2048, ge=64)
    # A hundred years: what is added to now must stay a date.
    deadline_seconds_max: int = Field(7 * 86_400, ge=1, le=36_500 * 86_400)
    # An open stream holds a socket and a reader; a client needs a handful.
    streams_max: int = Field(1000, ge=1)
    # For accounts without limits of their own (`tempa accounts set`); null: any number.
    account_queued_max: int | None = Field(None, ge=0)
    account_requests_per_second: float | None = Field(None, ge=RATE_MIN)
    account_compute_seconds_per_day: float | None = Field(None, ge=0)

    @model_validator(mode="after")
    def _leave_room(self) -> Self:
        if self.length_min >= self.length_max:
            raise ValueError("length_min must be below length_max")
        if self.num_gaussians_min > self.num_gaussians_max:
            raise ValueError("num_gaussians_min must not be above num_gaussians_max")
        return self


DEFAULT_LIMITS = Limits()
