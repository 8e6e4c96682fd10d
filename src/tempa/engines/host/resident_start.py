"""Start of a resident process. A script: run by its path, under an interpreter that need not know `tempa`.

The package is taken from where this file lies, so the interpreter needs what the engine imports, and not
Tempa itself. Its folder must not come onto the import path: in an installation that is the server's own
`site-packages`, whose numpy would hide the interpreter's.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def take_package(folder: Path) -> None:
    """Make `tempa` importable from `folder`, and nothing that lies beside it."""
    spec = importlib.util.spec_from_file_location(
        "tempa", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec
    assert spec.loader
    sys.modules["tempa"] = package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)


if __name__ == "__main__":
    take_package(Path(__file__).resolve().parents[2])
    from tempa.engines.host.resident_process import main

    main()
