"""The command line: `headwater …`. Commands import what they need when they run, so that `--help` is quick."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Exact live views of Spark queries over tables that change.")


@app.callback()
def _group() -> None:
    """Makes Typer expect the name of a command, although there is only one."""


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


def main() -> None:
    """The entry point of the program `headwater`."""
    app()


if __name__ == "__main__":
    main()
