"""Bare SQLite: one commit after the other, fsynced, of a row as large as a short message."""

import json
import sqlite3
import statistics
import sys
import time
from pathlib import Path


def main(folder: Path) -> None:
    connection = sqlite3.connect(folder / "commits.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, content TEXT)")
    times = []
    for _ in range(2_000):
        start = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows (content) VALUES (?)", ("x" * 300,))
        connection.execute("COMMIT")
        times.append(time.perf_counter() - start)
    print(json.dumps({"metric": "commit", "value": statistics.median(times) * 1e3}))


main(Path(sys.argv[1]))
