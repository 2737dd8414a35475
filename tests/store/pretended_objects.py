"""An object store in memory: an object appears whole when its stream is closed, and nothing is appended, moved or locked."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystemHandler, FileType, PyFileSystem

from headwater.store.objects import ObjectDisk

if TYPE_CHECKING:
    from broken_disks import Fuse


class Objects(FileSystemHandler):
    """What a store answers, and how often it was asked for which object."""

    def __init__(self) -> None:
        self.content: dict[str, tuple[bytes, datetime]] = {}
        self.fetched: list[str] = []
        self._lock = Lock()

    def put(self, path: str, data: bytes) -> None:
        with self._lock:
            self.content = {**self.content, path: (data, datetime.now(UTC))}

    def get_type_name(self) -> str:
        return "objects"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        assert selector.allow_not_found
        assert not selector.recursive
        below = selector.base_dir + "/"
        names = {path.removeprefix(below).partition("/")[0] for path in self.content if path.startswith(below)}
        return [self._info(below + name) for name in names]

    def open_input_file(self, path: str) -> pa.NativeFile:
        if path not in self.content:
            raise FileNotFoundError(path)
        self.fetched.append(path)
        return pa.BufferReader(self.content[path][0])

    open_input_stream = open_input_file

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        assert not metadata
        return pa.PythonFile(_Upload(self, path), mode="w")

    def delete_file(self, path: str) -> None:
        with self._lock:
            self.content = {other: kept for other, kept in self.content.items() if other != path}

    def delete_dir(self, path: str) -> None:
        with self._lock:
            self.content = {other: kept for other, kept in self.content.items() if not other.startswith(path + "/")}

    def refuse(self, *_: Any) -> Any:
        raise NotImplementedError

    create_dir = delete_dir_contents = delete_root_dir_contents = move = copy_file = open_append_stream = refuse

    def _info(self, path: str) -> FileInfo:
        found = self.content
        if path in found:
            data, time = found[path]
            return FileInfo(path, FileType.File, mtime=time, size=len(data))
        is_prefix = any(other.startswith(path + "/") for other in found)
        return FileInfo(path, FileType.Directory if is_prefix else FileType.NotFound)


class _Upload(io.BytesIO):
    def __init__(self, objects: Objects, path: str) -> None:
        super().__init__()
        self._objects = objects
        self._path = path

    def close(self) -> None:
        if not self.closed:
            self._objects.put(self._path, self.getvalue())
        super().close()


def disk_of(objects: Objects, settling: float = 0.0) -> ObjectDisk:
    return ObjectDisk(PyFileSystem(objects), "bucket/shop", "objects://bucket/shop", settling)


class BreakingObjectDisk(ObjectDisk):
    """One on which a put or a removal is the last, before or after it is done."""

    def __init__(self, objects: Objects, fuse: Fuse) -> None:
        super().__init__(PyFileSystem(objects), "bucket/shop", "objects://bucket/shop", 0.0)
        self._fuse = fuse

    def _put(self, name: str, data: bytes | pa.Buffer) -> None:
        if self._fuse.half():
            if self._fuse.passed % 2:
                super()._put(name, data)
            self._fuse.blow()
        super()._put(name, data)

    def remove(self, name: str) -> None:
        if self._fuse.half():
            self._fuse.blow()
        super().remove(name)


class BreakingObjects(Objects):
    """A store of which any request may fail; a put that fails may have arrived."""

    def __init__(self, fuse: Fuse) -> None:
        super().__init__()
        self.fuse = fuse

    def put(self, path: str, data: bytes) -> None:
        breaks = self.fuse.half()
        if not breaks or self.fuse.passed % 2:
            super().put(path, data)
        if breaks:
            self.fuse.blow()

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        self._ask()
        return super().get_file_info(paths)

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        self._ask()
        return super().get_file_info_selector(selector)

    def open_input_file(self, path: str) -> pa.NativeFile:
        self._ask()
        return super().open_input_file(path)

    open_input_stream = open_input_file

    def delete_file(self, path: str) -> None:
        self._ask()
        super().delete_file(path)

    def _ask(self) -> None:
        if self.fuse.half():
            self.fuse.blow()
