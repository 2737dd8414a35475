"""The parcel: this package as one zip file, for executors that do not have it (`spark-submit --py-files`)."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import headwater
from headwater.errors import StorageFailed


def write(target: Path) -> int:
    """Writes the file; gives the number of its bytes."""
    root = Path(headwater.__file__).parent
    files = sorted(path for path in root.rglob("*") if path.suffix in {".py", ".typed"} and path.is_file())
    try:
        with ZipFile(target, "w", ZIP_DEFLATED) as made:
            for path in files:
                made.write(path, path.relative_to(root.parent))
        return target.stat().st_size
    except OSError as error:
        raise StorageFailed(f"{str(target)!r} could not be written: {error.strerror or error}") from error
