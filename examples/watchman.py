"""A long-lived agent: it works on a schedule, sends mail to its owner, and sleeps in between."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import roost


async def watchman(turn: roost.Turn) -> AsyncIterator[str]:
    if turn.kind == "event":  # an event that it waits for
        yield f"heard of {turn.text}"
        return
    turn.state["rounds"] = turn.state.get("rounds", 0) + 1  # stored, also across restarts
    await turn.mail(f"user:{turn.user_id}", "all is well", f"round {turn.state['rounds']}: {turn.text}")
    # Tasks wait while it sleeps, those of its schedule too. After eight hours it is awake for the next round.
    await turn.sleep(8 * 3600, wake_on=roost.any_of(roost.event("alarm.*"), roost.mail("high")))
    yield "done"


with (
    tempfile.TemporaryDirectory() as folder,
    roost.open(f"sqlite:///{Path(folder) / 'watch.db'}", brains={"watchman": watchman}) as service,
):
    service.agents.create("ann", "night", profile="watchman")
    service.schedules.create("ann", "night", "check the doors", cron="0 22 * * *", zone="Europe/Berlin")

    task = service.tasks.send("ann", "night", "check the windows")
    print(service.tasks.wait("ann", task, timeout=10).result)
    for mail in service.mail.inbox("ann"):
        print(mail.sender, mail.subject, mail.body)

    service.events.publish("ann", "alarm.fire", {"floor": 3})
    another = service.tasks.send("ann", "night", "look at the third floor")
    print(service.tasks.wait("ann", another, timeout=10).status)
    print(service.agents.get("ann", "night").wake_reason)
