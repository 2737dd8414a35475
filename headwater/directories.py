"""What the commands on directories show: `headwater check`, `inspect`, `backup` and `restore`."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table

from headwater.store import lease
from headwater.store.backup import backup, restore
from headwater.store.checking import check
from headwater.store.inspecting import inspect, writer
from headwater.store.opening import decoded_without_spark, disk_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headwater.store.backup import Copied
    from headwater.store.checking import Finding
    from headwater.store.inspecting import Inspection, Relation

    Told = Callable[[int, int], None]

_QUERY = 60


def show_check(directory: str) -> bool:
    """Checks a directory; whether it is sound."""
    console = Console()
    disk = disk_at(directory)
    with _bar(console, "checking") as told:
        report = check(disk, decoded_without_spark, told)
    for finding in report.findings:
        _say(console, _line(finding))
    if not any(finding.file == lease.FILE for finding in report.findings):
        _say(console, _held(writer(disk)))
    damaged = sum(finding.is_damage for finding in report.findings)
    outcome = "[green]sound[/]" if report.is_sound else f"[red]{damaged} damaged[/]"
    _say(
        console,
        f"{escape(disk.place)} at epoch {report.epoch:,}: {report.files:,} files, {decimal(report.bytes)} read, {outcome}",
    )
    if not report.is_sound:
        _say(console, "repair damaged views with Session.repair; restore damaged tables from a backup: headwater restore")
    return report.is_sound


def show_inspection(directory: str, *, as_json: bool) -> None:
    found = inspect(disk_at(directory), decoded_without_spark)
    console = Console()
    if as_json:
        console.print_json(json.dumps({**asdict(found), "committed": _time(found.committed)}, ensure_ascii=False))
        return
    if found.relations:
        console.print(_relations(found))
    for line in _facts(found):
        _say(console, line)


def show_backup(directory: str, target: str) -> None:
    _copy(backup, directory, target, "backing up")


def show_restore(target: str, directory: str) -> None:
    _copy(restore, target, directory, "restoring")


def _copy(action: Callable[[str, str, Told], Copied], source: str, target: str, title: str) -> None:
    console = Console()
    with _bar(console, title) as told:
        copied = action(source, target, told)
    there = f", {copied.present:,} were there already" if copied.present else ""
    _say(console, f"{copied.files:,} files, {decimal(copied.bytes)} copied{there}")
    _say(console, f"{escape(target)} has epoch {copied.epoch:,} and all that the log says of later ones")


@contextmanager
def _bar(console: Console, title: str) -> Iterator[Told]:
    """A bar of bytes, where someone can see it move."""
    columns = (TextColumn(title), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _line(finding: Finding) -> str:
    word = "[red]damaged[/]" if finding.is_damage else "[yellow]note[/]   "
    affected = f"; affects {escape(', '.join(finding.affected))}" if finding.affected else ""
    return f"{word}  [bold]{escape(finding.file)}[/]: {escape(finding.what)}{affected}"


def _relations(found: Inspection) -> Table:
    table = Table(box=SIMPLE_HEAD)
    table.add_column("kind", no_wrap=True)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("state", justify="right", no_wrap=True)
    table.add_column("class", no_wrap=True)
    table.add_column("query")
    for each in found.relations:
        sign = "" if each.attached is None else "+"
        rows = "[red]damaged[/]" if each.rows is None else f"{each.rows:{sign},}"
        table.add_row(
            each.kind, escape(each.name), rows, decimal(each.state_bytes), each.maintenance or "", escape(_query(each))
        )
    return table


def _query(relation: Relation) -> str:
    if relation.kind == "table":
        return "" if relation.attached is None else f"(attached to {relation.attached})"
    text = "(a DataFrame)" if relation.query is None else " ".join(relation.query.split())
    return text if len(text) <= _QUERY else text[: _QUERY - 1] + "…"


def _facts(found: Inspection) -> Iterator[str]:
    yield f"{escape(found.place)}: format {found.format}, {decimal(found.bytes)} on disk"
    if found.committed is None:
        yield "nothing was committed yet"
    else:
        yield f"epoch {found.epoch:,}, committed {_time(found.committed)}"
    yield _held(found.writer)
    kept = (
        "no changes are kept" if found.log.first_epoch is None else f"changes are kept from epoch {found.log.first_epoch:,} on"
    )
    yield f"log: {found.log.segments:,} segments, {decimal(found.log.bytes)}; {kept}"


def _held(by: str | None) -> str:
    return "nobody writes to it" if by is None else f"held by {escape(by)}"


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(" ", "seconds")


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)
