"""A catalog as JSON: tables, views and the dataflow behind them, so that another process goes on with the same steps.

Nothing is compiled again, for what the compiler chose depends on the rows there were; and Spark is not needed to read it.
Steps are numbered as `Catalog.steps` lists them, before and after, so that states can be kept beside by these numbers.

What users said themselves — columns, keys, the text of queries — is there a second time, in plain words: a release that does
not know the steps of an older one goes on with the tables as they are, and builds the views again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from headwater.compiler.compiler import Compiler, Known
from headwater.compiler.dataflow import Step
from headwater.errors import NotSupported, UnreadableCatalog
from headwater.runtime.catalog import Catalog, TableEntry, ViewEntry
from headwater.runtime.lifetimes import Lifetime, is_hidden
from headwater.runtime.outside import Place
from headwater.schema import arrow_schema
from headwater.store.codec import Decoder, Encoder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.engine import Engine
    from headwater.operators.operator import Key
    from headwater.runtime.catalog import Entry
    from headwater.runtime.outside import Outside

    Json = dict[str, Any]

FORMAT = 1


def encode_catalog(catalog: Catalog, time_zone: str, wanted: Sequence[Wanted] = ()) -> Json:
    """What `decode_catalog` reads; `time_zone` is that of the session in which the catalog was made.

    `wanted` are views that are still to be made again.
    """
    for view in catalog.views.values():
        require_storable(view)
    encoder = Encoder()
    numbers = {step: number for number, step in enumerate(catalog.steps)}
    known = Known({}, {}) if catalog.compiler is None else catalog.compiler.known
    described = {
        "format": FORMAT,
        "time_zone": time_zone,
        "steps": [
            [encoder.number(step.operator), [numbers[child] for child in step.inputs], step.label] for step in catalog.steps
        ],
        "entries": [_described(entry, encoder, numbers) for entry in catalog.entries.values()],
        "known": [[encoder.number(node), numbers[step]] for node, step in known.steps.items()],
        "partitions": [encoder.number(partition) for partition in catalog.partitions],
        "arranged": [[numbers[step], list(key), numbers[kept]] for (step, key), kept in known.arranged.items()],
    }
    if wanted:
        described["wanted"] = [asdict(view) for view in wanted]
    return {**described, "classes": encoder.classes, "values": encoder.values}


def require_storable(view: ViewEntry) -> None:
    """Refuses a view that only the session can keep in which it was made."""
    if view.query.text is None and (view.refresh == "full" or view.query.root is None):
        raise NotSupported(
            f"view {view.name!r} is made of a DataFrame and recomputed as a whole, so it cannot be stored: "
            "create it from SQL text"
        )


def _described(entry: Entry, encoder: Encoder, numbers: Mapping[Step, int]) -> Json:
    described = {"name": entry.name, "schema": encoder.number(entry.schema), "contents": numbers[entry.contents]}
    if isinstance(entry, TableEntry):
        plain = {"columns": entry.schema.jsonValue(), "key": entry.key}
        if entry.attached is not None:
            assert entry.attached.place is not None
            plain["attached"] = asdict(entry.attached.place)
        if entry.lifetime is not None:
            plain["lifetime"] = asdict(entry.lifetime)
        return {"kind": "table", **described, "key": encoder.number(entry.key), "source": numbers[entry.source], "plain": plain}
    more = {"query": encoder.number(entry.query), "refresh": entry.refresh, "order": encoder.number(entry.order)}
    if entry.sketch is not None:
        more["sketch"] = encoder.number(entry.sketch)
    kind = "view" if entry.sketch is None else "sketch"
    return {"kind": kind, **described, **more, "output": numbers[entry.output], "plain": {"text": entry.query.text}}


def decode_catalog(described: Json, engine: Engine) -> Catalog:
    """The catalog that was encoded, over the engine of this session, made for the time zone that stands in it."""
    if described.get("format") != FORMAT:
        raise UnreadableCatalog(
            f"the catalog has the format {described.get('format')!r}, and this version of Headwater reads {FORMAT}: "
            "open it with the version that wrote it"
        )
    decoder = Decoder(described["classes"], {"engines": engine.engines, "recompute": engine.recompute}, engine.origins)
    decoder.read(described["values"])
    values = decoder.values
    steps: list[Step] = []
    for operator, inputs, label in described["steps"]:
        steps.append(Step(values[operator], tuple(steps[number] for number in inputs), label))
    known = Known(
        {values[node]: steps[step] for node, step in described["known"]},
        {(steps[step], tuple(key)): steps[kept] for step, key, kept in described["arranged"]},
    )
    entries = [_entry(entry, values, steps, engine) for entry in described["entries"]]
    partitions = tuple(values[number] for number in described.get("partitions", ()))
    return Catalog({entry.name.lower(): entry for entry in entries}, Compiler(engine.engines, known), partitions)


@dataclass(frozen=True)
class Wanted:
    """A view that is to be made again; without a text, it was made of a DataFrame that is gone."""

    name: str
    text: str | None
    refresh: str


def decode_tables(described: Json, engine: Engine) -> tuple[Catalog, dict[int, Step], list[Wanted]]:
    """The tables of a catalog whose steps this release does not know: where their rows are, by number, and the views."""
    catalog = Catalog()
    kept: dict[int, Step] = {}
    for entry in described["entries"]:
        if entry["kind"] == "table" and not is_hidden(entry["name"]):
            columns, key = StructType.fromJson(entry["plain"]["columns"]), entry["plain"]["key"]
            key = None if key is None else tuple(key)
            attached = _attached(entry, columns, key, engine)
            catalog = engine.definitions.table(catalog, entry["name"], columns, key, attached, _lifetime(entry)).catalog
    for entry in described["entries"]:
        if entry["kind"] == "table":
            kept[entry["contents"]] = catalog.tables[entry["name"].lower()].contents
    views = [Wanted(e["name"], e["plain"]["text"], e["refresh"]) for e in described["entries"] if e["kind"] == "view"]
    return catalog, kept, [*views, *decode_wanted(described)]


def decode_wanted(described: Json) -> list[Wanted]:
    """The views of a catalog that were still to be made again when it was stored."""
    return [Wanted(**view) for view in described.get("wanted", ())]


def _attached(described: Json, schema: StructType, key: Key | None, engine: Engine) -> Outside | None:
    """What a table is attached to; releases before attached tables say nothing of it."""
    place = described["plain"].get("attached")
    return None if place is None else engine.outside(described["name"], schema, key, Place(**place))


def _lifetime(described: Json) -> Lifetime | None:
    """How long the rows of a table live; releases before that say nothing of it."""
    said = described["plain"].get("lifetime")
    return None if said is None else Lifetime(**said)


def _entry(described: Json, values: list[Any], steps: list[Step], engine: Engine) -> Entry:
    name, schema, contents = described["name"], values[described["schema"]], steps[described["contents"]]
    if described["kind"] == "table":
        key = values[described["key"]]
        attached = _attached(described, schema, key, engine)
        source, arrow = steps[described["source"]], arrow_schema(schema)
        return TableEntry(name, schema, arrow, key, source, contents, attached, _lifetime(described))
    return ViewEntry(
        name=name,
        query=values[described["query"]],
        schema=schema,
        arrow=arrow_schema(schema),
        refresh=described["refresh"],
        output=steps[described["output"]],
        contents=contents,
        order=values[described["order"]],
        sketch=values[described["sketch"]] if "sketch" in described else None,
    )
