"""Machine code is kept by the state of all compiled sources, where only this user can write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwater import compile_cache

if TYPE_CHECKING:
    import pytest

PROGRAM = """
import json
import numpy as np
from headwater import compile_cache
from headwater.state.sorting import numbered
numbered(np.array([3, 1, 2], np.uint64), 2)
print(json.dumps([str(compile_cache.folder()), sorted(p.name for p in compile_cache.folder().iterdir())]))
"""


def compile_something(**environment: str) -> tuple[Path, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    folder, names = json.loads(done.stdout)
    return Path(folder), names


def test_code_is_kept_in_the_folder_of_the_sources(tmp_path: Path) -> None:
    folder, names = compile_something(HEADWATER_CACHE=str(tmp_path / "cache"))
    assert folder == tmp_path / "cache" / compile_cache.stamp()
    assert any(name.endswith(".nbc") for name in names)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert compile_something(HEADWATER_CACHE=str(tmp_path / "cache")) == (folder, names)


def test_the_cache_of_the_user_is_the_default(tmp_path: Path) -> None:
    folder, _ = compile_something(HEADWATER_CACHE="", XDG_CACHE_HOME=str(tmp_path))
    assert folder.parent == tmp_path / "headwater"


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    folder, names = compile_something(HEADWATER_CACHE=str(tmp_path / "cache"))
    assert tmp_path not in folder.parents
    assert names
    assert not folder.exists()


def test_a_folder_that_cannot_be_made_is_not_needed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder, names = compile_something(HEADWATER_CACHE=str(tmp_path / "file" / "cache"))
    assert names
    assert not folder.exists()


def test_code_of_sources_that_nobody_uses_is_removed(tmp_path: Path) -> None:
    old, recent = tmp_path / "old", tmp_path / "recent"
    for folder in (old, recent):
        folder.mkdir()
    os.utime(old, (0, 0))
    compile_something(HEADWATER_CACHE=str(tmp_path))
    assert not old.exists()
    assert recent.exists()


def test_the_stamp_covers_all_that_is_compiled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant of a module without compiled functions is part of the code that uses it."""
    sources = compile_cache.compiled_sources()
    assert {"state/loops.py", "state/sorting.py", "operators/bodies.py", "compiled.py"} <= set(sources)
    assert "session.py" not in sources
    stamps = {compile_cache.stamp()}
    for path in sources:
        changed = {**sources, path: sources[path] + b"#"}
        monkeypatch.setattr(compile_cache, "compiled_sources", lambda changed=changed: changed)
        compile_cache.stamp.cache_clear()
        stamps.add(compile_cache.stamp())
    monkeypatch.undo()
    compile_cache.stamp.cache_clear()
    assert len(stamps) == len(sources) + 1
