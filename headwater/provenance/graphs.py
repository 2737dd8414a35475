"""A derivation to look at: a Mermaid diagram, or a page of its own with a drawing, which needs nothing from anywhere."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.provenance.derivations import Derivation

# A larger drawing shows nobody anything: what is farther from the row is left out, and it is said so.
_MOST_SHOWN = 300
_WIDTH, _HEIGHT = 190, 84
_SHAPES = {"row": ("[", "]"), "fact": ("(", ")"), "absence": (">", "]"), "all": ("{{", "}}"), "any": ("{", "}")}


@dataclass(frozen=True)
class Graph:
    """The derivations of a row."""

    title: str
    derivation: Derivation
    columns: dict[str, list[str]]

    def vertices(self) -> list[int]:
        """The numbers of the vertices that are shown: from the row on, level by level."""
        return list(self._levels())

    def edges(self) -> list[tuple[int, int]]:
        """Pairs of a vertex and one that follows from it."""
        shown = self._levels()
        return [(child, number) for number in shown for child in self.derivation.vertices[number].children if child in shown]

    def mermaid(self) -> str:
        """A Mermaid flowchart, from base rows up to the row."""
        lines = ["flowchart BT", f'  answer(["{_mermaid(self.title)}"])']
        for number in self.vertices():
            vertex, text = self.derivation.vertices[number], _mermaid(self.label(number))
            opened, closed = _SHAPES[vertex.kind]
            lines.append(f'  v{number}{opened}"{text}"{closed}')
        lines += [f"  v{child} --> v{number}" for child, number in self.edges()]
        lines.append(f"  v{self.derivation.root} --> answer")
        return "\n".join(lines)

    def html(self, file: str | Path | None = None) -> str:
        """A page with a drawing; it is written to the file, if one is given."""
        levels = self._levels()
        left_out = len(self.derivation.reached()) - len(levels)
        note = f"<p>{left_out} vertices farther from the row are left out.</p>" if left_out else ""
        page = (
            f"<!DOCTYPE html>\n<html><head><meta charset='utf-8'><title>{escape(self.title)}</title>\n<style>{_STYLE}</style>"
            f"</head>\n<body><h1>{escape(self.title)}</h1>{note}\n{self._drawing(levels)}\n</body></html>\n"
        )
        if file is not None:
            from pathlib import Path

            Path(file).write_text(page, encoding="utf-8")
        return page

    def label(self, number: int) -> str:
        """What a vertex is, in one line."""
        vertex = self.derivation.vertices[number]
        match vertex.kind:
            case "row":
                names = self.columns.get(vertex.table, [])
                named = zip(names, vertex.row, strict=True)
                return f"{vertex.table}({', '.join(f'{name}={value!r}' for name, value in named)})"
            case "fact":
                return f"{vertex.table}({', '.join(map(repr, vertex.row))})"
            case "absence":
                return vertex.text
            case "all":
                return "all of" if vertex.children else "always"
        return "any of"

    def _levels(self) -> dict[int, int]:
        """How far from the root each vertex is, of those that are shown."""
        levels = {self.derivation.root: 0}
        waiting = deque(levels)
        while waiting and len(levels) < _MOST_SHOWN:
            number = waiting.popleft()
            for child in self.derivation.vertices[number].children:
                if child not in levels and len(levels) < _MOST_SHOWN:
                    levels[child] = levels[number] + 1
                    waiting.append(child)
        return levels

    def _drawing(self, levels: dict[int, int]) -> str:
        rows: dict[int, list[int]] = {}
        for number, level in levels.items():
            rows.setdefault(level, []).append(number)
        widest = max(map(len, rows.values()))
        places = {}
        for level, numbers in rows.items():
            start = (widest - len(numbers)) * _WIDTH / 2
            for i, number in enumerate(numbers):
                places[number] = start + (i + 0.5) * _WIDTH, (level + 0.5) * _HEIGHT
        lines = [f"<svg viewBox='0 0 {widest * _WIDTH} {(max(rows) + 1) * _HEIGHT}' width='{widest * _WIDTH}'>"]
        for child, number in self.edges():
            (x1, y1), (x2, y2) = places[child], places[number]
            lines.append(f"<path d='M{x1:.0f} {y1 - 20:.0f} L{x2:.0f} {y2 + 20:.0f}'/>")
        for number, (x, y) in places.items():
            kind, text = self.derivation.vertices[number].kind, self.label(number)
            short = text if len(text) <= 26 else text[:25] + "…"
            lines.append(
                f"<g class='{kind}'><title>{escape(text)}</title><rect x='{x - 85:.0f}' y='{y - 20:.0f}' width='170' "
                f"height='40' rx='{0 if kind == 'row' else 18}'/><text x='{x:.0f}' y='{y + 4:.0f}'>{escape(short)}</text></g>"
            )
        return "\n".join([*lines, "</svg>"])


_STYLE = (
    "body{font:14px sans-serif;margin:2em}text{text-anchor:middle;font:11px monospace}rect{fill:#fff;stroke:#555}"
    "path{stroke:#999;fill:none}.row rect{fill:#dcecff}.fact rect{fill:#fff3d6}.absence rect{fill:#fde3e3;stroke-dasharray:4}"
)


def _mermaid(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
