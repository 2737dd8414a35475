"""How a view is maintained: one description of its dataflow, shown as text, JSON or a Mermaid diagram."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from headwater.compiler.dataflow import in_order
from headwater.errors import NotSupported
from headwater.operators.operator import Choice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.cluster.placement import Placement
    from headwater.compiler.dataflow import Step
    from headwater.runtime.catalog import Snapshot, ViewEntry
    from headwater.runtime.streams import Work

CLASSES = ("linear", "stateful", "touched groups", "recomputed")


@dataclass(frozen=True)
class Described:
    """One operator of a view."""

    id: int
    inputs: list[int]
    operator: str
    rule: str
    monoid: str
    lineage: list[int] | None
    maintenance: str
    engine: str
    reason: str | None
    choice: str | None
    ways: list[str]
    expected_rows: int | None
    state_rows: int
    state_bytes: int
    last_rows_in: int
    last_rows_out: int
    last_seconds: float


def maintenance(view: ViewEntry) -> str:
    """The costliest class among the view's operators; keeping the rows of tables and the answer does not count."""
    classes = [step.operator.maintenance for step in in_order([view.output]) if step.label != "Arrange"]
    return max(classes, key=CLASSES.index)


def describe(snapshot: Snapshot, view: ViewEntry, work: Mapping[Step, Work]) -> list[Described]:
    """The view's operators, each after its inputs."""
    order = in_order([view.contents])
    ids = {step: i for i, step in enumerate(order)}
    return [_described(step, ids, snapshot, work) for step in order]


def _described(step: Step, ids: Mapping[Step, int], snapshot: Snapshot, work: Mapping[Step, Work]) -> Described:
    operator = step.operator
    state = snapshot.states.get(step, ())
    done = work.get(step)
    choice = operator.decision() or Choice(None, (), None)
    return Described(
        id=ids[step],
        inputs=[ids[child] for child in step.inputs],
        operator=step.label,
        rule=operator.rule,
        monoid=operator.monoid,
        lineage=None if operator.lineage is None else list(operator.lineage),
        maintenance=operator.maintenance,
        engine=operator.evaluated_by,
        reason=operator.reason(),
        choice=choice.text,
        ways=[*choice.ways, *operator.progress(state)],
        expected_rows=choice.rows,
        state_rows=sum(len(arrangement) for arrangement in state),
        state_bytes=sum(arrangement.nbytes for arrangement in state),
        last_rows_in=done.rows_in if done else 0,
        last_rows_out=done.rows_out if done else 0,
        last_seconds=done.seconds if done else 0.0,
    )


def statistics(snapshot: Snapshot, view: ViewEntry, work: Mapping[Step, Work], placement: Placement) -> dict[str, Any]:
    """The figures of a view as a whole."""
    operators = describe(snapshot, view, work)
    return {
        "view": view.name,
        "epoch": snapshot.epoch,
        "class": maintenance(view),
        "refresh": view.refresh,
        "refreshed_by": _refreshed_by(view, work),
        "placement": _placement(placement),
        "rows": snapshot.kept(view).total,
        "operators": len(operators),
        "state_rows": sum(o.state_rows for o in operators),
        "state_bytes": sum(o.state_bytes for o in operators),
        "last_seconds": sum(o.last_seconds for o in operators),
        "recomputed": [{"operator": o.operator, "why": o.reason} for o in operators if o.maintenance == "recomputed"],
        "touched_groups": [{"operator": o.operator, "why": o.reason} for o in operators if o.maintenance == "touched groups"],
        "strategies": _strategies(snapshot, view),
    }


def _strategies(snapshot: Snapshot, view: ViewEntry) -> list[dict[str, Any]]:
    """What recursions with provenance exchanged between their shards and keep, if they are at work in this process."""
    steps = in_order([view.contents])
    figures = [(step.label, step.operator.figures(snapshot.states.get(step, ()))) for step in steps]
    return [{"operator": label, **found} for label, found in figures if found]


def _refreshed_by(view: ViewEntry, work: Mapping[Step, Work]) -> str:
    """How the view came to its present rows: by a delta, or built from all rows of what it reads."""
    done = work.get(view.contents)
    return "rebuild" if done is None or done.rebuilt else "delta"


def _placement(placement: Placement) -> dict[str, Any]:
    """What was chosen, where the last epoch was run and why, and how many seconds each place was expected to take."""
    last = asdict(placement.last)
    return {"mode": placement.mode, "last": last.pop("where"), **last}


def explained(snapshot: Snapshot, view: ViewEntry, work: Mapping[Step, Work], placement: Placement, form: str) -> str:
    """The view's operators in the form asked for."""
    operators = describe(snapshot, view, work)
    match form.lower():
        case "text":
            return _text(snapshot, view, operators, _refreshed_by(view, work), placement)
        case "json":
            described = _json(snapshot, view, operators, _refreshed_by(view, work), placement)
            return json.dumps(described, indent=2, ensure_ascii=False)
        case "mermaid":
            return _mermaid(operators)
    raise NotSupported(f"a view can be explained as text, json or mermaid, not as {form!r}")


def _json(
    snapshot: Snapshot, view: ViewEntry, operators: list[Described], refreshed_by: str, placement: Placement
) -> dict[str, Any]:
    described = [{**asdict(o), "class": o.maintenance} for o in operators]
    for operator in described:
        del operator["maintenance"]
    return {
        "view": view.name,
        "epoch": snapshot.epoch,
        "class": maintenance(view),
        "refresh": view.refresh,
        "refreshed_by": refreshed_by,
        "placement": _placement(placement),
        "operators": described,
    }


def _text(snapshot: Snapshot, view: ViewEntry, operators: list[Described], refreshed_by: str, placement: Placement) -> str:
    lines = [f"live view {view.name}  ·  {maintenance(view)}  ·  refresh {view.refresh}  ·  epoch {snapshot.epoch}"]
    lines.append(f"refreshed by: {refreshed_by}")
    last = placement.last
    shape = f", {last.waves} waves of {last.shards} shards" if last.shards else ""
    lines.append(f"placement: {placement.mode};  last epoch: {last.where}{shape} ({last.why})")

    def write(number: int, indent: str, last: str, below: str) -> None:
        o = operators[number]
        lines.append(f"{indent}{last}{o.operator}  [{o.maintenance}, {o.engine}]")
        inner = indent + below + ("│  " if o.inputs else "   ")
        lines.append(f"{inner}{o.rule}")
        key = "" if o.lineage is None else f"  by ({', '.join(f'#{i}' for i in o.lineage)})"
        lines.append(f"{inner}merged by {o.monoid}{key};  state {o.state_rows} rows, {_size(o.state_bytes)}")
        lines.append(f"{inner}last: {o.last_rows_in} rows in, {o.last_rows_out} out, {o.last_seconds * 1000:.2f} ms")
        if o.reason:
            lines.append(f"{inner}why: {o.reason}")
        if o.choice:
            lines.append(f"{inner}chosen: {o.choice}")
        lines.extend(f"{inner}   {way}" for way in o.ways)
        if o.expected_rows is not None:
            lines.append(f"{inner}expected: {o.expected_rows:,} rows")
        for i, child in enumerate(o.inputs):
            more = i + 1 < len(o.inputs)
            write(child, indent + below, "├─ " if more else "└─ ", "│  " if more else "   ")

    write(len(operators) - 1, "", "", "")
    return "\n".join(lines)


def _mermaid(operators: list[Described]) -> str:
    lines = ["flowchart BT"]
    for o in operators:
        lines.append(f'  s{o.id}["{_escaped(o.operator)}<br/>{o.maintenance}<br/>{o.state_rows} rows"]')
        lines += [f"  s{child} --> s{o.id}" for child in o.inputs]
    return "\n".join(lines)


def _escaped(label: str) -> str:
    return label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def _size(count: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count //= 1024
    return f"{count} GiB"
