"""Flink SQL: rows and their retractions come in as lines through a socket, and changes of the answer go out through another.

All runs in one thread a step and in order, so a marker sent after the rows of a change comes out after all they changed: a
row of a group of its own, which every view shows.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from time import perf_counter

from outcome import changes, done, peak, plain, rows_of
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.java_gateway import get_gateway
from pyflink.table import StreamTableEnvironment
from pyflink.version import __version__

MARKER = -1
VIEWS = {
    "having": "SELECT a, AVG(CAST(b AS DOUBLE)) AS v FROM r GROUP BY a HAVING AVG(CAST(c AS DOUBLE)) < 1000",
    "join": "SELECT a, AVG(CAST(b AS DOUBLE)) AS v FROM (SELECT a, b, c FROM r WHERE b < 900) AS t JOIN s ON a = ttid "
    "GROUP BY a HAVING AVG(CAST(c AS DOUBLE)) < 1000",
    "top-k": "SELECT a, v FROM (SELECT a, SUM(b) AS v FROM r GROUP BY a) ORDER BY v DESC, a LIMIT 11",
}


def listening() -> socket.socket:
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(120)
    return server


class Pipe:
    """The running query, seen from its two ends."""

    def __init__(self, directory: Path, view: str) -> None:
        self._rows, answers = listening(), listening()
        self.answer: dict[int, str] = {}
        self._markers = 0
        self._kind = view
        self._start(directory, VIEWS[view], answers.getsockname()[1])
        self._out, _ = answers.accept()
        self._lines = self._out.makefile("r")
        self._in, _ = self._rows.accept()

    def _start(self, directory: Path, query: str, port: int) -> None:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        # Otherwise records wait a tenth of a second for others.
        env.set_buffer_timeout(0)
        tables = StreamTableEnvironment.create(env)
        java_tables = tables._j_tenv  # noqa: SLF001
        lines = env._j_stream_execution_environment.socketTextStream(  # noqa: SLF001
            "127.0.0.1", self._rows.getsockname()[1]
        )
        java_tables.createTemporaryView("lines", lines)
        fields = ", ".join(
            f"CAST(SPLIT_INDEX(f0, ',', {i}) AS {kind}) AS {name}"
            for i, (name, kind) in enumerate({"op": "STRING", "id": "BIGINT", "a": "INT", "b": "BIGINT", "c": "INT"}.items())
        )
        tables.execute_sql(f"CREATE TEMPORARY VIEW tagged AS SELECT {fields} FROM lines")
        tables.execute_sql(
            "CREATE TEMPORARY VIEW r AS SELECT * FROM FROM_CHANGELOG(input => TABLE tagged, op => DESCRIPTOR(op), "
            "op_mapping => MAP['+', 'INSERT', '-', 'DELETE'])"
        )
        tables.execute_sql(
            f"CREATE TEMPORARY TABLE s (ttid INT) WITH ('connector' = 'filesystem', 'path' = '{directory}/s.csv', "
            "'format' = 'csv')"
        )
        tables.execute_sql(f"CREATE TEMPORARY VIEW v AS {query}")
        tables.execute_sql("CREATE TEMPORARY VIEW o AS SELECT * FROM TO_CHANGELOG(input => TABLE v)")
        out = tables.sql_query("SELECT op || ',' || CAST(a AS STRING) || ',' || CAST(v AS STRING) || U&'\\000A' AS line FROM o")
        jvm = get_gateway().jvm
        text = jvm.java.lang.Class.forName("java.lang.String")
        stream = java_tables.toDataStream(out._j_table, text)  # noqa: SLF001
        stream.writeToSocket("127.0.0.1", port, jvm.org.apache.flink.api.common.serialization.SimpleStringSchema())
        env._j_stream_execution_environment.executeAsync()  # noqa: SLF001

    def send(self, lines: bytes) -> None:
        """Sends rows and waits until all they changed has come out."""
        self._markers += 1
        value = 10**12 if self._kind == "top-k" else self._markers % 900
        marker = f"+,{-self._markers},{MARKER},{value},0\n".encode()
        self._in.sendall(lines + marker)
        while True:
            operation, group, value = next(self._lines).rstrip("\n").split(",")
            if operation in ("INSERT", "UPDATE_AFTER"):
                self.answer[int(group)] = value
                if int(group) == MARKER:
                    return
            else:
                # An update that HAVING does not let through leaves only what was there before.
                self.answer.pop(int(group), None)


def tagged(sign: str, rows: dict[str, list[int]]) -> bytes:
    return "".join(
        f"{sign},{i},{a},{b},{c}\n" for i, a, b, c in zip(rows["id"], rows["a"], rows["b"], rows["c"], strict=True)
    ).encode()


def main(directory: Path, view: str) -> None:
    partners = [*plain(rows_of(directory / "s.parquet"))["ttid"], MARKER]
    (directory / "s.csv").write_text("".join(f"{ttid}\n" for ttid in partners))
    pipe = Pipe(directory, view)
    base = [tagged("+", plain(piece)) for piece in rows_of(directory / "r.parquet").to_batches(100_000)]
    started = perf_counter()
    pipe.send(b"".join(base))
    load = perf_counter() - started
    times: dict[int, list[float]] = {}
    for size, going, coming in changes(directory):
        text = tagged("-", plain(going)) + tagged("+", plain(coming))
        started = perf_counter()
        pipe.send(text)
        times.setdefault(size, []).append(perf_counter() - started)
    groups = [group for group in pipe.answer if group != MARKER]
    done(f"Flink {__version__}", load, times, groups, memory=peak())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
