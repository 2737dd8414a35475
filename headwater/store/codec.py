"""Values as JSON, and back: the closed set of immutable values that a catalog is made of.

A list of values, each of which refers to earlier ones by their numbers; what comes twice is written once:

    null, true, 7, "text"            itself
    [3, 4]                           a tuple
    {"expression.Column": [0, 2]}    a value of a listed class; the names of its fields stand in a table beside the list
    {"origin": [5, "condition"]}     where in Spark's plan a part stood, after the reading that gave the plan
    {"given": "engines"}             what the session that reads it has itself
    {"set" | "float" | "type" | "rows" | "struct": …}

So there is no depth, however deep an expression is, and nothing is run or imported by a name that stands in a file.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StructType

from headwater.algebra.origin import Handle
from headwater.compiler.linear import Engines
from headwater.errors import NotSupported, UnreadableCatalog
from headwater.frontend.origins import Sought
from headwater.frontend.recompute import Recompute
from headwater.store.registry import CLASSES, FIELDS, LATER, NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headwater.algebra.origin import Reading, Way
    from headwater.frontend.origins import Origins

    Json = Any

_GIVEN: Mapping[type, str] = {Engines: "engines", Recompute: "recompute"}


class Encoder:
    """Writes values; `values` and `classes` are what a `Decoder` needs."""

    def __init__(self) -> None:
        self.values: list[Json] = []
        self.classes: dict[str, list[str]] = {}
        self._records: dict[str, int] = {}
        # With the value itself, so that no other one gets its id.
        self._numbers: dict[int, tuple[object, int]] = {}

    def number(self, value: object) -> int:
        """The number of a value; it is written, after all that it refers to, if it was not yet."""
        waiting = [value]
        while waiting:
            part = waiting[-1]
            if id(part) not in self._numbers:
                missing = [inner for inner in _parts(part) if id(inner) not in self._numbers]
                if missing:
                    waiting += missing
                    continue
                self._numbers[id(part)] = part, self._written(part)
            waiting.pop()
        return self._numbers[id(value)][1]

    def _written(self, value: object) -> int:
        record = self._record(value)
        text = json.dumps(record)
        if text not in self._records:
            self._records[text] = len(self.values)
            self.values.append(record)
        return self._records[text]

    def _record(self, value: Any) -> Json:  # noqa: ANN401, PLR0911  (one case a kind)
        numbers = [self._numbers[id(part)][1] for part in _parts(value)]
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                return {"float": value.hex()}
            case tuple():
                return numbers
            case frozenset():
                return {"set": numbers}
            case pa.DataType():
                return {"type": _text(pa.schema([("", value)]).serialize())}
            case pa.RecordBatch():
                return {"rows": _text(_ipc(value))}
            case StructType():
                return {"struct": value.jsonValue()}
            case Handle() | Sought():
                return {"origin": [*numbers, *value.steps]}
        if type(value) in _GIVEN:
            return {"given": _GIVEN[type(value)]}
        name = NAMES[type(value)]
        self.classes[name] = FIELDS[type(value)]
        return {name: numbers}


def _parts(value: Any) -> Sequence[object]:  # noqa: ANN401  (a value of any kind)
    """What a value refers to."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, frozenset):
        # The same set is written in the same way by every process.
        return sorted(value, key=repr)
    if isinstance(value, Handle | Sought):
        return (value.reading,)
    if type(value) in NAMES:
        return [getattr(value, name) for name in FIELDS[type(value)]]
    if type(value) in _GIVEN or value is None or isinstance(value, _LEAVES):
        return ()
    raise NotSupported(f"a value of the class {type(value).__name__} cannot be stored")


_LEAVES = (bool, int, float, str, pa.DataType, pa.RecordBatch, StructType)


@dataclass(frozen=True)
class Decoder:
    """Reads values with the engines of a session, `given` by name; origins are sought when they are needed."""

    classes: Mapping[str, list[str]]
    given: Mapping[str, object]
    origins: Origins
    values: list[Any] = field(default_factory=list)

    def read(self, records: Sequence[Json]) -> None:
        """Reads the values, in the order in which they were written."""
        for name, names in self.classes.items():
            if name not in CLASSES:
                raise UnreadableCatalog(f"there is no class {name!r}; {_WAY_OUT}")
            if names != [each for each in FIELDS[CLASSES[name]] if each in names or each not in LATER[CLASSES[name]]]:
                raise UnreadableCatalog(
                    f"the class {name!r} has the fields {', '.join(FIELDS[CLASSES[name]])}, "
                    f"and not {', '.join(names)}; {_WAY_OUT}"
                )
        for number, record in enumerate(records):
            try:
                self.values.append(self._value(record))
            except (KeyError, IndexError, TypeError, ValueError, pa.ArrowException) as error:
                raise UnreadableCatalog(f"value {number} makes no sense: {error!r}; {_WAY_OUT}") from error

    def _value(self, record: Json) -> Any:  # noqa: ANN401, PLR0911  (one case a kind)
        if isinstance(record, list):
            return self._at(record)
        if not isinstance(record, dict):
            return record
        ((kind, content),) = record.items()
        if kind in _READERS:
            return _READERS[kind](content)
        if kind == "set":
            return frozenset(self._at(content))
        if kind == "given":
            return self.given[content]
        if kind == "origin":
            return _Place(self.values[content[0]], tuple(content[1:]))
        if kind not in self.classes:
            raise UnreadableCatalog(f"there is no kind of value {kind!r}; {_WAY_OUT}")
        return self._object(CLASSES[kind], dict(zip(self.classes[kind], self._at(content), strict=True)))

    def _object(self, made: type, values: dict[str, Any]) -> Any:  # noqa: ANN401  (of a listed class)
        place = values.get("origin")
        if place is None:
            return made(**values)
        part = made(**{**values, "origin": None})
        return replace(part, origin=Sought(place.reading, place.steps, part, self.origins))

    def _at(self, numbers: Sequence[int]) -> tuple[Any, ...]:
        if any(number < 0 for number in numbers):
            raise IndexError(min(numbers))
        return tuple(self.values[number] for number in numbers)


@dataclass(frozen=True)
class _Place:
    """Where a part stood, before it is known which part."""

    reading: Reading
    steps: Way


_WAY_OUT = "it was written by another version of Headwater: open it with that one"


def _ipc(rows: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return sink.getvalue()


def _text(content: pa.Buffer) -> str:
    return base64.b64encode(content).decode("ascii")


def _bytes(text: str) -> pa.Buffer:
    return pa.py_buffer(base64.b64decode(text, validate=True))


_READERS: Mapping[str, Callable[[Any], object]] = {
    "float": float.fromhex,
    "type": lambda text: pa.ipc.read_schema(_bytes(text)).field(0).type,
    "rows": lambda text: pa.ipc.open_stream(_bytes(text)).read_next_batch(),
    "struct": StructType.fromJson,
}
