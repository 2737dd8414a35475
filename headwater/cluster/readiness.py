"""Readiness: whether executors have what a job needs. It is asked before the first one, since a failing task tells less.

    ready  iff  every executor that answers has this version of the package and all it imports,
                reads what the driver wrote into the directory, and writes there what the driver reads

Executors in the driver's own process (`local[*]`) reach its files, and are not asked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import headwater
from headwater.errors import ExecutorsNotReady

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import SparkContext

    from headwater.cluster.yard import Yard
    from headwater.store.disk import Disk

    # Where it was asked, what is wrong there (nothing, if it is empty), and the file that was written there.
    Found = tuple[str, str, str]

_LOCAL = re.compile(r"local(\[.*)?")
_WAYS_OUT = {
    "package": "install {package} there, or send it along: make a file with `headwater zip headwater.zip` and give it to "
    "spark-submit as --py-files headwater.zip, or to the session as spark.submit.pyFiles",
    "directory": "use a directory that the driver and all executors reach under the same name, such as one on a shared file "
    "system or in an object store",
}


def is_local(context: SparkContext) -> bool:
    """Whether tasks run in the driver's own process, or in processes that it starts itself."""
    return _LOCAL.fullmatch(context.master or "") is not None


def require_ready(context: SparkContext, cores: int, yard: Yard) -> None:
    """Raises unless executors can run jobs that leave their files in this yard."""
    known, written = yard.new_name(), yard.new_name().removesuffix(".arrow")
    text = known.encode()
    yard.disk.write(known, lambda sink: sink.write(text))
    files = [known]
    try:
        ask = _question(headwater.__version__, yard.disk.place, yard.disk.address, known, written)
        answers: list[Found] = context.parallelize(range(cores), cores).map(ask).collect()
        files += [file for _, _, file in answers if file]
        wrong = {place: (kind, what) for place, found, file in answers for kind, what in _problems(found, file, yard.disk)}
    finally:
        for file in files:
            yard.disk.remove(file)
    if wrong:
        facts = "; ".join(f"on {place} {what}" for place, (_, what) in sorted(wrong.items()))
        kinds = sorted({kind for kind, _ in wrong.values()}, reverse=True)
        package = f"headwater {headwater.__version__}, with all it needs,"
        raise ExecutorsNotReady(facts, [_WAYS_OUT[kind].format(package=package) for kind in kinds])


def _problems(found: str, file: str, disk: Disk) -> list[tuple[str, str]]:
    if found:
        kind, _, what = found.partition(": ")
        return [(kind, what)]
    if disk.size(file) is None:
        return [("directory", f"what is written to {disk.place!r} does not arrive here: it is another directory there")]
    return []


def _question(version: str, place: str, address: str, known: str, written: str) -> Callable[[int], Found]:
    """What a task finds; it knows nothing of this package but what it imports itself."""

    def ask(number: int) -> Found:
        import socket
        import sys

        here = f"{socket.gethostname()} ({sys.executable})"
        try:
            import headwater
        except ImportError as error:
            return here, f"package: {error}", ""
        if headwater.__version__ != version:
            return here, f"package: headwater is of version {headwater.__version__}, and {version} here", ""
        try:
            from headwater.cluster import tasks  # noqa: F401  (whatever tasks need)
            from headwater.store.opening import disk_at
        except ImportError as error:
            return here, f"package: {error}", ""
        file = f"{written}-{number}.arrow"
        try:
            disk = disk_at(address)
            if disk.read(known) != known.encode():
                return here, f"directory: {place!r} is another directory", ""
            disk.write(file, lambda sink: sink.write(known.encode()))
        except OSError as error:
            return here, f"directory: {place!r} cannot be used: {error.strerror or error}", ""
        return here, "", file

    return ask
