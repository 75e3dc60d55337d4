"""What was measured, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from contestants import Contestant
from measuring import Measured
from startup import SHOWN, Start

BEGIN, END = "<!-- generated: make bench -->\n", "<!-- end of generated -->\n"
BASES = (("pytrec_eval", "JSON"), ("ranx", "JSON"))


@dataclass
class Sized:
    """All that was measured at one number of rows."""

    rows: int
    repeats: int
    runs: dict[Contestant, list[Measured]] = field(default_factory=dict)
    megabytes: dict[Contestant, float] = field(default_factory=dict)
    left_out: dict[Contestant, str] = field(default_factory=dict)
    load: float = 0.0
    """The machine's load average when all was measured; these tools alone make 1 to 2."""

    def wall(self, contestant: Contestant) -> float:
        """The best of its runs."""
        return min(run.wall_s for run in self.runs[contestant])

    def cpu(self, contestant: Contestant) -> float:
        """CPU time of the best run."""
        return min(self.runs[contestant], key=lambda run: run.wall_s).cpu_s

    def peak(self, contestant: Contestant) -> float:
        """The most that any run needed."""
        return max(run.peak_mb for run in self.runs[contestant])

    def spread(self) -> float:
        """The worst run over the best, of whichever tool that is largest for."""
        return max(max(run.wall_s for run in runs) / self.wall(tool) for tool, runs in self.runs.items())

    def find(self, tool: str, form: str, workers: int | None = None) -> Contestant | None:
        """Who was measured under that name; the quicker number of workers where none is named."""
        fits = [c for c in self.runs if (c.tool, c.form) == (tool, form) and workers in (None, c.workers)]
        return min(fits, key=self.wall, default=None)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first two columns are text."""
    rule = ["---" if i < 2 else "---:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *rows]) + "\n"


def power(rows: int) -> str:
    """10⁶ for a million."""
    exponent = len(str(rows)) - 1
    return "10" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")) if rows == 10**exponent else f"{rows:,}"


def tools(sized: Sized) -> str:
    """The main table of one size."""
    bases = [base for tool, form in BASES if (base := sized.find(tool, form))]
    head = ["tool", "input", "wall s", "CPU s", "peak MB", "rows/s", *(f"times as fast as {b.tool}" for b in bases)]
    rows = [_tool(sized, c, bases) for c in sized.runs if c.kind != "floor"]
    left_out = {c: reason for c, reason in sized.left_out.items() if c.kind != "floor"}
    rows += [[c.label, c.form, reason, *[""] * (len(head) - 3)] for c, reason in left_out.items()]
    many = f"Best of {sized.repeats} (worst over best: up to {sized.spread():.2f})" if sized.repeats > 1 else "One run each"
    return f"### {power(sized.rows)} rows\n\n{many}; load average at the end: {sized.load:.1f}.\n\n{table(head, rows)}"


def _tool(sized: Sized, contestant: Contestant, bases: Sequence[Contestant]) -> list[str]:
    wall = sized.wall(contestant)
    figures = [f"{wall:.2f}", f"{sized.cpu(contestant):.2f}", f"{sized.peak(contestant):.0f}", f"{sized.rows / wall:,.0f}"]
    return [contestant.label, contestant.form, *figures, *(f"{sized.wall(base) / wall:.2f}" for base in bases)]


# ---- targets

SPEEDS = [
    (10**7, "Parquet", "pytrec_eval", 5.0),
    (10**7, "Parquet", "ranx", 25.0),
    (10**7, "nested JSONL", "pytrec_eval", 2.0),
    (10**7, "nested JSONL", "ranx", 11.0),
    (10**7, "columnar JSONL", "pytrec_eval", 2.5),
    (10**5, "nested JSONL", "pytrec_eval", 1.0),
]
PEAK_MB = {10**7: 400.0, 10**8: 1000.0}
WORKERS_GAIN = 1.6
FORMS = ("Parquet", "nested JSONL", "columnar JSONL", "flat JSONL")


def targets(sizes: Sequence[Sized]) -> str:
    """What was aimed at, at the sizes that were measured."""
    rows = [row for sized in sizes for row in (*_speeds(sized), *_peaks(sized), *_gains(sized))]
    return "### Targets\n\n" + table(["rows", "target", "measured", "met"], rows) if rows else ""


def _speeds(sized: Sized) -> Iterable[list[str]]:
    for rows, form, peer, least in SPEEDS:
        ours, base = sized.find("Tripos", form), sized.find(peer, "JSON")
        if rows == sized.rows and ours and base:
            ratio = sized.wall(base) / sized.wall(ours)
            yield [power(rows), f"{form}: {least:g} × {peer}, JSON", f"{ratio:.2f} ({ours.label})", _met(ratio >= least)]


def _peaks(sized: Sized) -> Iterable[list[str]]:
    if most := PEAK_MB.get(sized.rows):
        for ours in (c for c in sized.runs if c.tool == "Tripos"):
            peak = sized.peak(ours)
            yield [power(sized.rows), f"{ours.form}, {ours.label}: at most {most:g} MB", f"{peak:.0f} MB", _met(peak <= most)]


def _gains(sized: Sized) -> Iterable[list[str]]:
    for form in FORMS if sized.rows >= 10**7 else ():
        one, two = sized.find("Tripos", form, 1), sized.find("Tripos", form, 2)
        if one and two:
            gain = sized.wall(one) / sized.wall(two)
            yield [power(sized.rows), f"{form}: 2 workers {WORKERS_GAIN} × 1", f"{gain:.2f}", _met(gain >= WORKERS_GAIN)]


def _met(met: bool) -> str:
    return "yes" if met else "**no**"


# ---- the rest


def linearity(sizes: Sequence[Sized]) -> str:
    """Rows a second by size."""
    if len(sizes) < 2:
        return ""
    ours = dict.fromkeys(c for sized in sizes for c in sized.runs if c.tool == "Tripos")
    rows = [[c.label, c.form, *(f"{s.rows / s.wall(c):,.0f}" if c in s.runs else "" for s in sizes)] for c in ours]
    head = ["tool", "input", *(power(s.rows) for s in sizes)]
    return "### Rows a second by size\n\nStart-up weighs on the small ones.\n\n" + table(head, rows)


def reading(sizes: Sequence[Sized]) -> str:
    """A whole evaluation, and orjson alone on the same file."""
    head = ["rows", "input", "MB", "orjson alone MB/s", "orjson alone lines/s", "Tripos MB/s", "Tripos lines/s", "share"]
    return "### Against orjson alone on the same file\n\n" + table(head, [row for s in sizes for row in _readings(s)])


def _readings(sized: Sized) -> Iterable[list[str]]:
    for floor in (c for c in sized.runs if c.kind == "floor"):
        ours = sized.find("Tripos", floor.form, 1) or sized.find("Tripos", floor.form)
        if ours is None:
            continue
        megabytes, lines = sized.megabytes[floor], sized.rows if floor.form == "flat JSONL" else sized.rows // 100
        walls = sized.wall(floor), sized.wall(ours)
        speeds = [text for wall in walls for text in (f"{megabytes / wall:,.0f}", f"{lines / wall:,.0f}")]
        yield [power(sized.rows), floor.form, f"{megabytes:,.1f}", *speeds, f"{walls[0] / walls[1]:.2f}"]


def starting(starts: dict[str, list[Start]]) -> str:
    """Start-up, one table a revision of the sources."""
    head = ["command", "largest imports, ms", "wall ms", "imports ms", "modules"]
    parts = [
        f"{'Now' if name == 'now' else f'At {name}'}:\n\n{table(head, [_started(start) for start in rows])}"
        for name, rows in starts.items()
    ]
    return "### Start-up\n\n" + "\n".join(parts)


def _started(start: Start) -> list[str]:
    if start.error:
        return [f"`{start.command}`", start.error, "", "", ""]
    largest = [f"{name} {ms:.0f}" for name, ms in list(start.packages.items())[:SHOWN] if ms >= 0.5]
    return [f"`{start.command}`", ", ".join(largest), f"{start.wall_ms:.0f}", f"{start.imports_ms:.0f}", str(start.modules)]


BUSY = 2.5
NOISY = "\n**Other work was running on the machine: these figures are noisy, CPU times less so.**\n"


def heading(machine: dict[str, str], versions: dict[str, str], load: float) -> str:
    """What it was measured with."""
    told = ", ".join(f"{name}: {value}" for name, value in machine.items())
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"Machine: {told}.\n\nVersions: {listed}.\n{NOISY if load > BUSY else ''}"


def put(path: Path, text: str) -> None:
    """Replace what stands between the markers."""
    before, _, rest = path.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
