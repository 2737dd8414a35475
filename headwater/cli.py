"""The command line: `headwater …`. Commands import what they need when they run, so that `--help` is quick."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    # Locals may have a password in them.
    pretty_exceptions_show_locals=False,
    help="Exact live views of Spark queries over tables that change.",
)

Directory = Annotated[
    str, typer.Argument(metavar="DIR", help="A Headwater directory: its path, or the URI of an object store.")
]
Backup = Annotated[str, typer.Argument(metavar="TARGET", help="A backup: its path, or the URI of an object store.")]


@contextmanager
def _errors() -> Iterator[None]:
    """What goes wrong is said in one line, without a traceback."""
    from headwater.errors import HeadwaterError

    try:
        yield
    except HeadwaterError as error:
        typer.echo(f"headwater: {error}", err=True)
        raise typer.Exit(1) from error


@app.command()
def demo(
    rows: Annotated[int, typer.Option(min=1_000, help="Rows of the shop in all.")] = 2_000_000,
    seconds: Annotated[int, typer.Option(min=1, help="How long changes are applied.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another shop.")] = 1,
) -> None:
    """A small shop on local Spark: five live views under a minute of changes, and Spark as the judge.

    Ends with exit code 0 if every view equals Spark's answer.
    """
    from pyspark.errors import PySparkException

    from headwater.demo.display import display
    from headwater.demo.tour import tour
    from headwater.errors import HeadwaterError

    try:
        equal = tour(display(), rows, seconds, seed)
    except (HeadwaterError, PySparkException) as error:
        typer.echo(f"headwater: {error}", err=True)
        raise typer.Exit(1) from error
    raise typer.Exit(0 if equal else 1)


@app.command()
def check(directory: Directory) -> None:
    """Reads all of a directory and compares it with its checksums; nothing is changed, and a writer may be at work.

    Ends with exit code 0 if the directory is sound.
    """
    with _errors():
        from headwater.directories import show_check

        sound = show_check(directory)
    raise typer.Exit(0 if sound else 1)


@app.command()
def inspect(
    directory: Directory,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,  # noqa: FBT002  (a flag)
) -> None:
    """Shows what is in a directory: tables, views, sizes, the last commit, the writer, the log."""
    with _errors():
        from headwater.directories import show_inspection

        show_inspection(directory, as_json=as_json)


@app.command()
def backup(directory: Directory, target: Backup) -> None:
    """Copies a directory while it is in use; the next time, only what is new."""
    with _errors():
        from headwater.directories import show_backup

        show_backup(directory, target)


@app.command()
def restore(target: Backup, directory: Directory) -> None:
    """Makes a new directory of a backup."""
    with _errors():
        from headwater.directories import show_restore

        show_restore(target, directory)


@app.command("cluster-by")
def cluster_by(
    directory: Directory,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table of the directory.")],
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="The column in whose order the rows are written.")],
    target: Annotated[str, typer.Argument(metavar="PATH", help="Where the Parquet files go; nothing may be there yet.")],
    files: Annotated[int | None, typer.Option(min=1, help="How many files; else as many as is usual for the rows.")] = None,
) -> None:
    """Writes a table as Parquet files clustered on a column, so that sketches by that column can skip files and row groups."""
    with _errors():
        import headwater as hw

        with hw.connect(directory) as session:
            session.export(table, target, cluster_by=column, files=files)
            typer.echo(f"{table}: {len(session.table(table)):,} rows in order of {column} at {target}")


@app.command("zip")
def parcel(target: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, such as headwater.zip.")]) -> None:
    """Writes this package as one file, for executors that do not have it: spark-submit --py-files FILE."""
    with _errors():
        from headwater.cluster import parcel

        size = parcel.write(target)
    typer.echo(f"{target}: {size:,} bytes")


Description = Annotated[Path, typer.Argument(metavar="FILE", help="A pipeline, as TOML.", exists=True, dir_okay=False)]


@app.command()
def run(file: Description) -> None:
    """Runs a pipeline: creates its tables and views, follows its sources and writes its sinks, until it is interrupted.

    `headwater apply` changes what is running.
    """
    with _errors():
        from headwater.pipelines import running

        try:
            running.run(file, typer.echo)
        except KeyboardInterrupt:
            typer.echo("stopped")


@app.command()
def apply(
    file: Description,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before it is done.")] = False,  # noqa: FBT002  (a flag)
) -> None:
    """Shows what a description would change in a pipeline, and changes it, whether it is running or not."""
    with _errors():
        from headwater.pipelines import changing

        changing.change(file, lambda: yes or typer.confirm("Apply?"), typer.echo)


@app.command()
def datalog(
    file: Annotated[typer.FileText, typer.Argument(metavar="FILE", help="A Datalog program; - reads it from standard input.")],
    directory: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Run it over the tables of a Headwater directory, and keep its views there."),
    ] = None,
) -> None:
    """Runs a Datalog program, and prints the answers of its questions; without any, the rows of each predicate with rules."""
    with _errors():
        import headwater as hw

        with hw.connect(directory) as session:
            program = session.datalog(file.read())
            found = [("", answer) for answer in program.answers] or [*program.views.items()]
            for name, answer in found:
                rows = answer.arrow().sort_by([(column, "ascending") for column in answer.arrow().column_names])
                typer.echo(f"{name}({', '.join(rows.column_names)})" if name else "\t".join(rows.column_names))
                for row in rows.to_pylist():
                    typer.echo("\t".join(str(value) for value in row.values()))


def main() -> None:
    """The entry point of the program `headwater`."""
    app()


if __name__ == "__main__":
    main()
