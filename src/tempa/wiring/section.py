"""What every section of the settings is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """One table of the settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")
