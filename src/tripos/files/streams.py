"""Bytes in and bytes out: compression by suffix, stdin, physical lines, and writes that are whole or not there."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from tripos.errors import InputError, OutputError, UsageError, quoted, suggest

STDIN = STDOUT = "-"
_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 20
_DEVICES = ("/dev/", "/proc/")


def open_bytes(path: str) -> BinaryIO:
    """Open a file for reading; `.gz` and `.zst` are unpacked, "-" is standard input.

    Raises InputError for what is not a readable file, with the nearest name that is.
    """
    if path == STDIN:
        if sys.stdin is None:
            raise InputError.at(STDIN, "standard input is closed")
        return cast("BinaryIO", sys.stdin.buffer)
    try:
        raw = open(path, "rb")  # noqa: SIM115 - handed to the caller, who closes it
    except IsADirectoryError:
        raise InputError.at(path, "is a directory: name a file") from None
    except FileNotFoundError:
        raise InputError.at(path, f"no such file{_near(path)}") from None
    except OSError as error:
        raise InputError.at(path, f"cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError.at(quoted(path), "is no file name") from None
    if path.endswith(".gz"):
        return cast("BinaryIO", io.BufferedReader(cast("Any", _GzipStream(raw)), _CHUNK))
    if path.endswith(".zst"):
        return cast("BinaryIO", io.BufferedReader(cast("Any", _ZstdStream(raw)), _CHUNK))
    return raw


class _GzipStream(gzip.GzipFile):
    """gzip that closes the file beneath it."""

    def __init__(self, raw: IO[bytes]) -> None:
        super().__init__(fileobj=raw, mode="rb")
        self._beneath = raw

    def close(self) -> None:
        super().close()
        self._beneath.close()


class _ZstdStream(io.RawIOBase):
    """zstd frames as a raw stream that notices a torn end (zstandard's own reader ends there without a word)."""

    def __init__(self, raw: IO[bytes]) -> None:
        import zstandard

        self._raw, self._damaged = raw, zstandard.ZstdError
        self._new: Callable[[], Any] = lambda: zstandard.ZstdDecompressor().decompressobj()
        self._frame = self._new()
        self._in_frame = False
        self._packed = b""
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and self._fill():
            pass
        n = min(len(buffer), len(self._ready))
        buffer[:n], self._ready = self._ready[:n], self._ready[n:]
        return n

    def _fill(self) -> bool:
        chunk = self._packed or self._raw.read(_CHUNK)
        if not chunk:
            if self._in_frame:
                raise EOFError
            return False
        self._in_frame = True
        try:
            self._ready = self._frame.decompress(chunk)
        except self._damaged as error:
            raise zlib.error(str(error)) from None
        self._packed = b""
        if self._frame.eof:
            self._packed, self._frame, self._in_frame = self._frame.unused_data, self._new(), False
        return True

    def close(self) -> None:
        self._raw.close()
        super().close()


Span = tuple[int, int]
"""Bytes start..stop−1 of a plain file, cut at line ends."""


def spans(path: str, n: int) -> list[Span]:
    """The file in at most n parts of about equal size, cut at line ends; one where it is packed, or standard input."""
    if n <= 1 or path == STDIN or path.endswith((".gz", ".zst")) or not Path(path).is_file():
        return [(0, -1)]
    size = Path(path).stat().st_size
    cuts = [0]
    with open_bytes(path) as stream:
        for part in range(1, n):
            stream.seek(max(size * part // n - 1, 0))
            stream.readline()
            cuts.append(min(stream.tell(), size))
    edges = sorted({*cuts, size})
    return list(itertools.pairwise(edges)) or [(0, -1)]


def physical_lines(path: str, span: Span = (0, -1)) -> Iterator[tuple[int, bytes, bool]]:
    """Each line that is not blank as (number from 1, bytes without line end or BOM, whether it ended in a newline).

    CRLF and a leading BOM are read; blank lines are skipped and counted. Within a span, numbers count from its start.
    """
    stream = open_bytes(path)
    number = 0
    try:
        with stream if path != STDIN else contextlib.nullcontext(stream):
            for raw in _raw_lines(stream, span):
                number += 1
                ended = raw.endswith(b"\n")
                line = raw.rstrip(b"\r\n")
                if number == 1 and not span[0]:
                    line = line.removeprefix(_BOM)
                if line and not line.isspace():
                    yield number, line, ended
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError.at(path, f"the compressed file is torn or damaged ({_said(error)})", line=number) from None
    except OSError as error:
        raise InputError.at(path, f"cannot be read: {error.strerror or error}", line=number) from None


def _raw_lines(stream: BinaryIO, span: Span) -> Iterator[bytes]:
    start, stop = span
    if stop < 0:
        yield from stream
        return
    stream.seek(start)
    left = stop - start
    for raw in stream:
        yield raw
        left -= len(raw)
        if left <= 0:
            return


def newlines(path: str, span: Span) -> int:
    """Line ends in a span of a plain file."""
    with open_bytes(path) as stream:
        stream.seek(span[0])
        left, n = span[1] - span[0], 0
        while left > 0 and (chunk := stream.read(min(_CHUNK, left))):
            left -= len(chunk)
            n += chunk.count(b"\n")
        return n


def count_lines(path: str) -> int:
    """Lines of a plain file, for progress alone; 0 where that is not known beforehand (standard input, compressed)."""
    try:
        if path == STDIN or path.endswith((".gz", ".zst")) or not Path(path).is_file():
            return 0
        with open(path, "rb") as stream:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(_CHUNK), b""))
    except (OSError, ValueError):
        return 0  # whatever is wrong is told when the file is read


def read_text(path: str) -> str:
    """A whole small text file; raises InputError where it cannot be read, or is no UTF-8."""
    try:
        stream = open_bytes(path)
        with stream if path != STDIN else contextlib.nullcontext(stream):
            return stream.read().removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        raise InputError.at(path, f"is not UTF-8 (byte {error.start})") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError.at(path, f"the compressed file is torn or damaged ({_said(error)})") from None
    except OSError as error:
        raise InputError.at(path, f"cannot be read: {error.strerror or error}") from None


def _said(error: Exception) -> str:
    return str(error).splitlines()[0][:100] if str(error) else "it ends too early"


def _near(path: str) -> str:
    folder = Path(path).parent
    if not folder.is_dir():
        return f": there is no folder {folder}"
    return suggest(Path(path).name, [p.name for p in folder.iterdir()])


@contextlib.contextmanager
def whole(path: str | Path) -> Iterator[IO[bytes]]:
    """Write a file that appears complete or not at all; see `all_whole`."""
    with all_whole(path) as (stream,):
        yield stream


@contextlib.contextmanager
def all_whole(*paths: str | Path) -> Iterator[list[IO[bytes]]]:
    """Write files that appear complete, together, or not at all: temporary files beside them, fsync, rename in this order.

    Existing files stay untouched until all new ones are complete; on any failure the temporary files are removed. A link is
    followed; "-" is standard output, and devices and pipes are written to as they are. A path ending in `.gz` or `.zst` is
    compressed, with no time stamp inside. Raises OutputError where one cannot be written.
    """
    drafts: list[_Draft] = []
    try:
        for path in paths:
            with _told_as_output(path):
                drafts.append(_Draft(path))
        yield [draft.stream for draft in drafts]
        for draft in drafts:
            with _told_as_output(draft.path):
                draft.finish()
        for draft in drafts:
            with _told_as_output(draft.path):
                draft.publish()
    except OSError as error:
        raise OutputError(f"{_names(paths)}: cannot be written: {error.strerror or error}; nothing was changed") from None
    finally:
        for draft in drafts:
            draft.drop()


@contextlib.contextmanager
def _told_as_output(path: str | Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        if str(path) != STDOUT:
            raise OutputError(f"{_shown(path)}: cannot be written: its reader is gone") from None
        discard_stdout()  # the reader of standard output has seen enough
    except OSError as error:
        raise OutputError(f"{_shown(path)}: cannot be written: {error.strerror or error}; nothing was changed") from None


def _names(paths: tuple[str | Path, ...]) -> str:
    return ", ".join(_shown(path) for path in paths)


def _shown(path: str | Path) -> str:
    return "standard output" if str(path) == STDOUT else quoted(str(path))


def discard_stdout() -> None:
    """Send what is still to be written to standard output nowhere: nobody reads it any more."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Draft:
    """One output in the making."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self._stack = contextlib.ExitStack()
        self._temporary: Path | None = None
        if str(path) == STDOUT:
            self.stream: IO[bytes] = sys.stdout.buffer
            return
        self._target = Path(os.path.realpath(path))
        if self._target.is_dir():
            raise OutputError(f"{_shown(path)}: is a directory: name a file")
        if str(path).startswith(_DEVICES) or (self._target.exists() and not self._target.is_file()):
            self._raw: IO[bytes] = self._stack.enter_context(Path(path).open("wb"))  # noqa: SIM115 - closed by finish or drop
        else:
            self._target.parent.mkdir(parents=True, exist_ok=True)
            name = f".{self._target.name[:80]}."
            handle, temporary = tempfile.mkstemp(prefix=name, suffix=".tmp", dir=self._target.parent)
            self._temporary = Path(temporary)
            self._raw = self._stack.enter_context(os.fdopen(handle, "wb"))
        self._packer = contextlib.ExitStack()
        self.stream = self._packer.enter_context(_packed(self._raw, self._target.suffix))

    def finish(self) -> None:
        """Bring every byte to the disk."""
        if str(self.path) == STDOUT:
            self.stream.flush()
            return
        self._packer.close()
        self._raw.flush()
        if self._temporary is not None:
            os.fsync(self._raw.fileno())
        self._stack.close()

    def publish(self) -> None:
        """Take the name."""
        if self._temporary is not None:
            self._temporary.chmod(0o666 & ~_umask())
            self._temporary.replace(self._target)
            self._temporary = None
            _sync_folder(self._target.parent)

    def drop(self) -> None:
        """Remove what did not take its name."""
        with contextlib.suppress(OSError, ValueError):
            self._stack.close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)


def check_outputs(outputs: Sequence[str | Path], inputs: Sequence[str]) -> None:
    """Raise UsageError where an output would replace an input, or another output."""
    seen: dict[str, str] = {}
    for output in map(str, outputs):
        if output == STDOUT or output.startswith(_DEVICES):
            continue
        place = os.path.realpath(output)
        if place in seen:
            raise UsageError(f"{quoted(output)}: two outputs would be one file: choose another name")
        seen[place] = output
    for path in inputs:
        if path and path != STDIN and (target := seen.get(os.path.realpath(path))):
            raise UsageError(f"{quoted(target)} is an input of this command: it never replaces what it reads")


@contextlib.contextmanager
def _packed(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as stream:
            yield cast("IO[bytes]", stream)
    elif suffix == ".zst":
        import zstandard

        with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as writer:
            yield cast("IO[bytes]", writer)
    else:
        yield raw


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def writable_folder(path: str) -> Path:
    """Make the output folder, before any work is done; raises OutputError where that fails."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = tempfile.NamedTemporaryFile(dir=folder, prefix=".tripos-")  # noqa: SIM115 - closed at once
        probe.close()
    except FileExistsError:
        raise OutputError(f"{folder}: is a file, not a folder: name a folder for the output") from None
    except NotADirectoryError:
        raise OutputError(f"{folder}: a part of this path is a file, not a folder") from None
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror}") from None
    return folder


def only_one_stdin(paths: Sequence[str]) -> None:
    """Raise UsageError when two inputs both ask for standard input; `NAME=-` asks for it too."""
    if sum(path == STDIN or path.endswith(f"={STDIN}") for path in paths) > 1:
        raise UsageError('"-" (standard input) was given for more than one input: only one can read it')
