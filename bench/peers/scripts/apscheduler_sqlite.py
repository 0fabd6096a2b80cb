"""APScheduler with its SQLite job store: 10,000 timers that are due at one instant. Runs in its own environment."""
# mypy: ignore-errors

import datetime
import json
import sys
import threading
import time
from pathlib import Path

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler

COUNT, LEAD = 10_000, 40.0
late: list[float] = []
done = threading.Event()


def fire(due: float) -> None:
    late.append(time.time() - due)
    if len(late) == COUNT:
        done.set()


def main(folder: Path) -> None:
    scheduler = BackgroundScheduler(
        timezone=datetime.UTC,
        executors={"default": ThreadPoolExecutor(10)},
        jobstores={"default": SQLAlchemyJobStore(f"sqlite:///{folder}/apscheduler.db")},
    )
    scheduler.start(paused=True)
    due = time.time() + LEAD
    moment = datetime.datetime.fromtimestamp(due, datetime.UTC)
    for _ in range(COUNT):
        scheduler.add_job(fire, "date", run_date=moment, args=(due,), misfire_grace_time=None)
    assert time.time() < due, "the jobs were not added in time"
    scheduler.resume()
    assert done.wait(LEAD + 90), f"{len(late):,} of {COUNT:,} fired"
    scheduler.shutdown()
    late.sort()
    print(json.dumps({"metric": "timers_late", "value": late[COUNT * 99 // 100]}))
    print(json.dumps({"metric": "timers_handled", "value": late[-1]}))


main(Path(sys.argv[1]))
