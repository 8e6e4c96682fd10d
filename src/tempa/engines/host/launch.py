"""Starting an engine's process by exec, under the interpreter that has the engine's packages."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tempa.engines.host.output import Output


@dataclass(frozen=True, slots=True)
class Launch:
    """How engines' processes are started, and how long the host waits for them.

    `load_seconds` until the kernel is loaded (the first import of a cold OCCT took 2.1 s);
    `fork_seconds` until there is a child (forks are made one after the other, some 5 ms each with a
    loaded OCCT); `leave_seconds` from a child's report to its end, then it is killed; `reap_seconds`
    from a kill to the child's end; `model_seconds` until a resident engine's model is loaded (gigabytes,
    each hashed before); `idle_seconds` without a job until a resident process ends and gives its memory
    back, None for never.
    """

    python: str = sys.executable
    extra_path: Sequence[Path] = ()
    load_seconds: float = 120.0
    fork_seconds: float = 10.0
    leave_seconds: float = 2.0
    reap_seconds: float = 2.0
    model_seconds: float = 600.0
    idle_seconds: float | None = None

    def start(
        self,
        command: Sequence[str],
        line: int,
        output: Output,
        *,
        python: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a process that has `line` and prints to `output`; `command` follows the interpreter.

        It leads its own session: a terminal's Ctrl-C is for the server.

        Raises:
            OSError: there is no such interpreter, or no room for a process.
        """
        # -u: nothing printed waits in a buffer, of Python or C, to be lost in a crash or printed again
        # by every fork. -P: no imports from where the server happens to stand.
        return subprocess.Popen(
            [python or self.python, "-u", "-P", *command, "--line", str(line), "--host", str(os.getpid())],
            env=self._environment() | dict(variables or {}),
            stdin=subprocess.DEVNULL,
            stdout=output.fileno(),
            stderr=subprocess.STDOUT,
            pass_fds=(line,),
            start_new_session=True,
        )

    def _environment(self) -> dict[str, str]:
        """The server's own, without its settings: some are secrets, and no kernel has business with any."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TEMPA_")}
        path = [str(folder) for folder in self.extra_path]
        path += [inherited] if (inherited := kept.get("PYTHONPATH")) else []
        return kept | ({"PYTHONPATH": os.pathsep.join(path)} if path else {})
