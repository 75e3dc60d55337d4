"""One command as a whole process: wall clock, CPU time and peak memory of it and of every process under it.

CPU time is what the kernel charged to the process and to the children it waited for (wait4). Memory is the proportional set
size (PSS) summed over the process tree, read every 50 ms: a page that n processes share, as forked ones do, counts 1 / n in
each, and so once in all. The kernel's own high-water mark of the largest process catches peaks between two readings.

Commands find their bytecode compiled, as after an installation: Python may write it, whatever the environment says.
"""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

POLL_S, READ_S = 0.01, 0.05
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Measured:
    """What one process took, and what it said."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    code: int
    stdout: str
    stderr: str

    def without(self, wall_s: float, cpu_s: float) -> Measured:
        """The same, less a part that is not to be counted."""
        return replace(self, wall_s=self.wall_s - wall_s, cpu_s=self.cpu_s - cpu_s)


def measure(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Measured:
    """Run a command to its end."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, env=_environment(environment or {}))
        peak, status, usage = _watched(process)
        wall = time.perf_counter() - started
        out.seek(0)
        err.seek(0)
        return Measured(
            wall_s=wall,
            cpu_s=usage.ru_utime + usage.ru_stime,
            peak_mb=max(peak / 1e6, usage.ru_maxrss * 1024 / 1e6),
            code=os.waitstatus_to_exitcode(status),
            stdout=out.read().decode(),
            stderr=err.read().decode(),
        )


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**own, **more}


def _watched(process: subprocess.Popen[bytes]) -> tuple[int, int, resource.struct_rusage]:
    peak, due = 0, 0.0
    while True:
        if time.perf_counter() >= due:
            peak = max(peak, sum(map(_proportional, _tree(process.pid))))
            due = time.perf_counter() + READ_S
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            process.returncode = os.waitstatus_to_exitcode(status)
            return peak, status, usage
        time.sleep(POLL_S)


def _tree(pid: int) -> Iterator[int]:
    """A process and all under it, as far as they still are there."""
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = path.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from _tree(int(child))


def _proportional(pid: int) -> int:
    """Bytes of one process, its share of shared pages alone; 0 where it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def machine() -> dict[str, str]:
    """What kind of machine this is; no names."""
    cpu = Path("/proc/cpuinfo").read_text()
    fields = dict(line.split(":", 1) for line in cpu.split("\n\n")[0].replace("\t", "").splitlines() if ":" in line)
    flags = fields.get("flags", "").split()
    return {
        "cores": str(os.cpu_count()),
        "cpu": fields.get("model name", "unknown").strip(),
        "memory": f"{memory_mb() / 1000:.0f} GB",
        "AVX2": "yes" if "avx2" in flags else "no",
        "AVX-512": "yes" if "avx512f" in flags else "no",
        "load before": f"{os.getloadavg()[0]:.1f}",
    }


def memory_mb() -> float:
    """The machine's memory."""
    return PAGE * os.sysconf("SC_PHYS_PAGES") / 1e6
