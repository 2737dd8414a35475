"""Results as pictures: one function a picture, drawn from the results alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

    from benchmarks.results import Results
    from benchmarks.workload import Figure

BLUE, ORANGE, GREEN, GREY = "#1f6fb2", "#d95f02", "#1b9e77", "#7f7f7f"
STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.dpi": 120,
    "font.size": 10,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "savefig.bbox": "tight",
}


def draw(results: Results, directory: Path) -> list[Path]:
    """Draws what there is to draw of a family; the files made."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    with mpl.rc_context(STYLE):
        for name, picture in PICTURES.get(results.family, {}).items():
            drawn = picture(results)
            if drawn is not None:
                paths.append(directory / f"{name}.png")
                drawn.savefig(paths[-1])
                plt.close(drawn)
    return paths


def refresh_by_delta(results: Results) -> Picture | None:
    """Refresh over the size of the delta, with the recompute as a level line, a panel for each kind of view."""
    figures = [figure for figure in results.figures if figure.measure == "speedup"]
    kinds = list(dict.fromkeys(figure.kind for figure in figures))
    if not kinds:
        return None
    picture, axes = plt.subplots(1, len(kinds), figsize=(4.6 * len(kinds), 4), sharey=True, squeeze=False)
    for kind, ax in zip(kinds, axes[0], strict=True):
        _refresh_panel(ax, [figure for figure in figures if figure.kind == kind])
        ax.set_title(f"{kind}, {results.rows:,} rows")
    axes[0][0].set_ylabel("seconds")
    return picture


def _refresh_panel(ax: Axes, figures: list[Figure]) -> None:
    names = list(dict.fromkeys(figure.workload for figure in figures))
    for place, name in enumerate(names):
        mine = [figure for figure in figures if figure.workload == name]
        colour = plt.get_cmap("viridis")(0.9 * place / max(1, len(names) - 1))
        sizes = [figure.delta for figure in mine]
        ax.loglog(sizes, [figure.details["refresh_s"] for figure in mine], marker="o", ms=4, color=colour, label=name)
    recomputes = [figure.details["recompute_s"] for figure in figures]
    ax.axhspan(min(recomputes), max(recomputes), color=ORANGE, alpha=0.25, label="Spark recompute")
    ax.set_xlabel("rows changed by the commit")
    ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)


def break_even(results: Results) -> Picture | None:
    """Large deltas as a share of Spark's recompute."""
    figures = [figure for figure in results.figures if figure.measure == "share of recompute"]
    if not figures:
        return None
    picture, ax = plt.subplots(figsize=(6, 5))
    for name, colour in zip(dict.fromkeys(figure.workload for figure in figures), (BLUE, ORANGE), strict=False):
        mine = [figure for figure in figures if figure.workload == name]
        ax.loglog([f.details["per_cent"] for f in mine], [f.value for f in mine], marker="o", color=colour, label=name)
        changed = [f for f in results.figures if f.workload == name and f.measure == "share of change and recompute"]
        places, shares = [f.details["per_cent"] for f in changed], [f.value for f in changed]
        ax.loglog(places, shares, marker="o", linestyle=":", color=colour, label=f"{name}, Spark's table changed as well")
    ax.axhline(1, color=GREY, linestyle="--", label="Spark")
    ax.set_xlabel("rows changed, % of the table")
    ax.set_ylabel("refresh, as a multiple of Spark's time")
    ax.set_title("Large changes: where recomputing begins to win")
    ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    return picture


def tpch_ratios(results: Results) -> Picture | None:
    """How many times quicker than Spark each query of TPC-H is, beside the least it should be."""
    figures = [figure for figure in results.figures if figure.measure == "speedup"]
    if not figures:
        return None
    picture, ax = plt.subplots(figsize=(9, 4))
    values = [figure.value for figure in figures]
    bars = ax.bar([figure.workload for figure in figures], values, color=BLUE)
    ax.bar_label(bars, [f"{value:.0f}" if value >= 10 else f"{value:.1f}" for value in values], fontsize=8)
    ax.axhline(5, color=ORANGE, linestyle="--", label="target for each: 5 ×")
    middle = next((figure.value for figure in results.figures if figure.measure == "median speedup"), None)
    if middle is not None:
        ax.axhline(middle, color=GREY, linestyle="--", label=f"median: {middle:.0f} ×")
    ax.set_yscale("log")
    ax.grid(visible=False, axis="x")
    ax.set_ylabel("Spark recompute / refresh")
    ax.set_title("TPC-H: refresh with 1000 orders and their items")
    ax.tick_params(axis="x", labelsize=8)
    ax.margins(x=0.01)
    ax.set_ylim(bottom=1)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)
    return picture


def long_run_latency(results: Results) -> Picture | None:
    """Median and 99th percentile of every hundred epochs."""
    figures = [figure for figure in results.figures if "medians" in figure.details]
    if not figures:
        return None
    picture, axes = plt.subplots(1, len(figures), figsize=(4.6 * len(figures), 3.8), sharey=True, squeeze=False)
    for figure, ax in zip(figures, axes[0], strict=True):
        epochs = [100 * (place + 1) for place in range(len(figure.details["medians"]))]
        for name, label, colour in (("p99s", "99th percentile", ORANGE), ("medians", "median", BLUE)):
            ax.plot(epochs, [1000 * value for value in figure.details[name]], color=colour, label=label)
        ax.set_title(figure.workload)
        ax.set_xlabel("epoch")
        ax.set_ylim(bottom=0)
    axes[0][0].set_ylabel("ms for a commit of 100 rows")
    axes[0][0].legend()
    return picture


def commit_by_views(results: Results) -> Picture | None:
    """The time of a commit over the number of views, beside so many times the time of one."""
    figures = [figure for figure in results.figures if "views" in figure.details]
    if not figures:
        return None
    picture, ax = plt.subplots(figsize=(6, 4))
    for name, colour in zip(dict.fromkeys(figure.workload for figure in figures), (BLUE, ORANGE), strict=False):
        mine = [figure for figure in figures if figure.workload == name]
        counts, times = [f.details["views"] for f in mine], [1000 * f.value for f in mine]
        ax.loglog(counts, times, marker="o", color=colour, label=name)
        ax.loglog(counts, [times[0] * count for count in counts], color=colour, linestyle=":", alpha=0.6)
    ax.plot([], [], color=GREY, linestyle=":", label="as many times one view")
    ax.set_xlabel("views over the table")
    ax.set_ylabel(f"ms for a commit of {figures[0].delta:,} rows")
    ax.set_title("Many views")
    ax.legend()
    return picture


def increments(results: Results) -> Picture | None:
    """The nine increments one by one: level lines while the tables grow."""
    figures = [figure for figure in results.figures if "refreshes" in figure.details]
    if not figures:
        return None
    kinds = list(dict.fromkeys(figure.workload.partition(",")[0] for figure in figures))
    picture, axes = plt.subplots(1, len(kinds), figsize=(5 * len(kinds), 3.8), squeeze=False)
    for kind, ax in zip(kinds, axes[0], strict=True):
        mine = [figure for figure in figures if figure.workload.startswith(f"{kind},")]
        for place, figure in enumerate(mine):
            times = [1000 * value for value in figure.details["refreshes"]]
            colour = plt.get_cmap("viridis")(0.9 * place / max(1, len(mine) - 1))
            ax.plot(range(1, len(times) + 1), times, marker="o", ms=4, color=colour, label=f"{figure.delta:,} rows")
        ax.set_title(kind)
        ax.set_xlabel("increment")
        ax.set_ylim(bottom=0)
        ax.legend(fontsize=8)
    axes[0][0].set_ylabel("ms")
    return picture


def placement_crossover(results: Results) -> Picture | None:
    """An epoch in the driver and on executors over the size of its change, with what `auto` took and the recompute."""
    figures = [figure for figure in results.figures if figure.measure == "place chosen to the better one"]
    kinds = list(dict.fromkeys(figure.workload for figure in figures))
    if not kinds:
        return None
    picture, axes = plt.subplots(1, len(kinds), figsize=(5 * len(kinds), 3.8), sharey=True, squeeze=False)
    for kind, ax in zip(kinds, axes[0], strict=True):
        mine = [figure for figure in figures if figure.workload == kind]
        sizes = [figure.delta for figure in mine]
        for name, label, colour in (("driver", "driver", BLUE), ("cluster", "executors", ORANGE)):
            ax.loglog(sizes, [figure.details[name] for figure in mine], marker="o", color=colour, label=label)
        ax.loglog(sizes, [figure.details["auto"] for figure in mine], "x", color="black", label="auto")
        ax.axhline(mine[0].details["recompute_s"], color=GREY, linestyle="--", label="Spark recompute")
        ax.set_title(f"{kind}, {results.rows:,} rows")
        ax.set_xlabel("rows changed by the commit")
        ax.legend(fontsize=8)
    axes[0][0].set_ylabel("seconds")
    return picture


def strategies(results: Results) -> Picture | None:
    """What deletions take by strategy: seconds, rows exchanged, and the provenance of a row."""
    figures = [figure for figure in results.figures if figure.measure == "time of dred"]
    if not figures:
        return None
    measures = (
        ("cpu_s", "seconds"),
        ("exchanged_rows", "rows exchanged"),
        ("provenance_bytes_a_row", "provenance, bytes a row"),
    )
    picture, axes = plt.subplots(len(figures), len(measures), figsize=(4.2 * len(measures), 2 * len(figures)), squeeze=False)
    for figure, row in zip(figures, axes, strict=True):
        known = {name: each for name, each in figure.details["strategies"].items() if each["ended"]}
        for (measure, label), ax in zip(measures, row, strict=True):
            values = [each.get(measure, 0) for each in known.values()]
            bars = ax.barh(list(known), values, color=[BLUE, *[GREY] * (len(known) - 1)])
            ax.bar_label(bars, [f"{value:,.3g}" if value < 10 else f"{value:,.0f}" for value in values], padding=3, fontsize=8)
            ax.set_title(f"{figure.workload}: {label}", fontsize=9)
            ax.invert_yaxis()
            ax.margins(x=0.2)
            ax.tick_params(axis="y", labelsize=8)
            ax.grid(visible=False, axis="y")
            ax.set_xticks([])
    picture.suptitle("Deletions one at a time, by strategy")
    picture.tight_layout()
    return picture


def lazy_and_eager(results: Results) -> Picture | None:
    """The time to build networks of more and more links, with lazy and with eager provenance."""
    figures = [figure for figure in results.figures if figure.measure == "eager to lazy"]
    if not figures:
        return None
    picture, ax = plt.subplots(figsize=(6, 4))
    for name, line in zip(dict.fromkeys(figure.workload for figure in figures), ("-", "--"), strict=False):
        mine = [figure for figure in figures if figure.workload == name]
        counts = [figure.details["links"] for figure in mine]
        for mode, colour in (("eager", ORANGE), ("lazy", BLUE)):
            times = [figure.details[mode]["cpu_s"] for figure in mine]
            ax.loglog(counts, times, line, marker="o", color=colour, label=f"{mode}, {name.partition(', ')[2]}")
            stopped = [(c, t) for c, t, f in zip(counts, times, mine, strict=True) if not f.details[mode]["ended"]]
            ax.scatter(*zip(*stopped, strict=True) if stopped else ((), ()), marker="^", s=80, color=colour, zorder=3)
    ax.set_xlabel("links")
    ax.set_ylabel("seconds to build (▲: stopped there)")
    ax.set_title("Absorption provenance, lazy and eager")
    ax.legend()
    return picture


def recursion_by_change(results: Results) -> Picture | None:
    """Commits under recursive views over the number of rows of the answer that each changed, a panel for each query."""
    figures = [figure for figure in results.figures if figure.measure == "speedup over DuckDB"]
    kinds = list(dict.fromkeys(figure.kind for figure in figures))
    if not kinds:
        return None
    picture, axes = plt.subplots(1, len(kinds), figsize=(4.2 * len(kinds), 3.8), sharey=True, squeeze=False)
    for kind, ax in zip(kinds, axes[0], strict=True):
        mine = [figure for figure in figures if figure.kind == kind]
        names = list(dict.fromkeys(figure.workload for figure in mine))
        for name, colour in zip(names, (BLUE, ORANGE, GREEN), strict=False):
            for figure, marker in zip((f for f in mine if f.workload == name), "ox", strict=False):
                rows, times = zip(*figure.details["points"], strict=True)
                label = f"{name.partition(', ')[2]}, {figure.delta} edges"
                ax.plot(rows, times, marker, ms=4, alpha=0.6, color=colour, label=label)
        scratch = [figure.details["duckdb_s"] for figure in mine]
        ax.axhspan(min(scratch), max(scratch), color=GREY, alpha=0.3, label="DuckDB from scratch")
        ax.set_xscale("symlog")
        ax.set_xlim(-0.5, max(20, 2 * ax.get_xlim()[1]))
        ax.set_yscale("log")
        ax.set_title(kind)
        ax.set_xlabel("rows of the answer changed by the commit")
        ax.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    axes[0][0].set_ylabel("seconds")
    return picture


def sketches_used(results: Results) -> Picture | None:
    """Queries with their sketches beside the same without: in the driver, and where Spark reads what is left."""
    figures = [figure for figure in results.figures if figure.measure == "use"]
    if not figures:
        return None
    picture, ax = plt.subplots(figsize=(8, 3.6))
    names = [figure.workload.removeprefix("use, ") for figure in figures]
    for place, (label, key, colour) in enumerate(
        (("without", "without_s", GREY), ("with, on Spark", "with_on_spark_s", ORANGE), ("with", "with_s", BLUE))
    ):
        values = [figure.details[key] for figure in figures]
        bars = ax.bar([i + 0.27 * (place - 1) for i in range(len(names))], values, 0.25, color=colour, label=label)
        ax.bar_label(bars, [f"{value:.2g}" for value in values], fontsize=7)
    ax.set_xticks(range(len(names)), names)
    ax.set_yscale("log")
    ax.grid(visible=False, axis="x")
    ax.set_ylabel("seconds")
    ax.set_title("Queries with a sketch and without")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3)
    return picture


def sketches_in_mixes(results: Results) -> Picture | None:
    """Updates and queries in turn, over the rows of an update, a panel for each mix."""
    figures = [figure for figure in results.figures if figure.measure == "mix"]
    names = list(dict.fromkeys(figure.workload for figure in figures))
    if not names:
        return None
    picture, axes = plt.subplots(1, len(names), figsize=(4 * len(names), 3.4), sharey=True, squeeze=False)
    lines = {
        "captured each time": ("captured_each_time_s", ORANGE),
        "none": ("without_s", GREY),
        "maintained": ("maintained_s", BLUE),
    }
    for name, ax in zip(names, axes[0], strict=True):
        mine = [figure for figure in figures if figure.workload == name]
        for label, (key, colour) in lines.items():
            ax.loglog([f.delta for f in mine], [f.details[key] for f in mine], marker="o", color=colour, label=label)
        ax.set_title(name)
        ax.set_xlabel("rows of an update")
    axes[0][0].set_ylabel("seconds of 1000 operations")
    axes[0][1 if len(names) > 1 else 0].legend(title="sketches", loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)
    return picture


def sketches_swept(results: Results) -> Picture | None:
    """A commit of 100 rows with a sketch, a panel for each thing that varies."""
    figures = [figure for figure in results.figures if figure.kind == "sweep" and figure.measure == "refresh"]
    return _panels(figures, {"ms": BLUE}, lambda figure, _: figure.value, "ms")


def sketches_switched(results: Results) -> Picture | None:
    """Commits with a technique of maintenance and without it, a panel for each."""
    figures = [figure for figure in results.figures if "without_s" in figure.details and figure.kind == "switch"]
    lines = {"refresh_s": BLUE, "without_s": ORANGE}
    return _panels(figures, lines, lambda figure, key: 1000 * figure.details[key], "ms, without in orange")


def sketches_kept(results: Results) -> Picture | None:
    """The state of a sketch if the best m are kept, and of all as a level line, a panel for each query."""
    figures = [figure for figure in results.figures if figure.measure == "state"]
    few = [figure for figure in figures if figure.delta is not None]
    picture = _panels(few, {"MB": BLUE}, lambda figure, _: figure.value, "MB, of all rows in grey")
    for ax in picture.axes if picture is not None else ():
        whole = [figure.value for figure in figures if figure.delta is None and figure.workload == ax.get_xlabel()]
        for value in whole:
            ax.axhline(value, color=GREY, linestyle="--")
        ax.set_yscale("log")
        ax.autoscale(axis="y")
    return picture


def _panels(figures: list[Figure], lines: dict[str, str], value: Callable[[Figure, str], float], unit: str) -> Picture | None:
    """Figures over what varies, a panel for each workload."""
    names = list(dict.fromkeys(figure.workload for figure in figures))
    if not names:
        return None
    picture, axes = plt.subplots(1, len(names), figsize=(2.8 * len(names), 2.8), squeeze=False)
    for name, ax in zip(names, axes[0], strict=True):
        mine = [figure for figure in figures if figure.workload == name]
        for measure in dict.fromkeys(figure.measure for figure in mine):
            some = [figure for figure in mine if figure.measure == measure]
            for key, colour in lines.items():
                ax.plot([f.delta for f in some], [value(f, key) for f in some], marker="o", color=colour)
        ax.set_xscale("log")
        ax.set_ylim(bottom=0)
        ax.set_xlabel(name, fontsize=9)
    axes[0][0].set_ylabel(unit)
    picture.set_layout_engine("tight")
    return picture


PICTURES: dict[str, dict[str, Callable[[Results], Picture | None]]] = {
    "synthetic": {"refresh_by_delta": refresh_by_delta, "break_even": break_even},
    "incremental": {"increments": increments},
    "tpch": {"tpch_ratios": tpch_ratios},
    "many_views": {"commit_by_views": commit_by_views},
    "long_run": {"long_run_latency": long_run_latency},
    "cluster": {"placement_crossover": placement_crossover},
    "recursion": {"recursion_by_change": recursion_by_change},
    "sketches": {
        "sketches_used": sketches_used,
        "sketches_in_mixes": sketches_in_mixes,
        "sketches_swept": sketches_swept,
        "sketches_switched": sketches_switched,
        "sketches_kept": sketches_kept,
    },
    "provenance": {"strategies": strategies, "lazy_and_eager": lazy_and_eager},
}
