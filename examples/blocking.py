"""A blocking brain: a plain generator in its own thread that checks whether it should stop."""

from __future__ import annotations

import time
from collections.abc import Iterator

import roost


def primes(turn: roost.PlainTurn) -> Iterator[str]:
    """Yield the requested number of primes, slowly."""
    found: list[int] = []
    number = 2
    while len(found) < int(turn.text) and not turn.stopping:
        time.sleep(0.001)  # simulates a blocking library
        if all(number % prime for prime in found):
            found.append(number)
            yield f"{number} "
        number += 1


def main() -> None:
    with roost.open("sqlite:///primes.db", brains={"primes": primes}) as service:
        talk = service.create_talk_session("ann", profile="primes")
        service.add_message("ann", talk, "10")
        for change in service.stream_messages("ann", talk):
            if change.message.sender == "agent":
                print(change.text, end="", flush=True)
        print()

        service.add_message("ann", talk, "1000000")
        for change in service.stream_messages("ann", talk):
            if change.message.content.startswith("2 3 5 ") and change.message.seq > 2:
                break
        receipt = service.stop("ann", talk, wait=5)
        answer = service.get_messages("ann", talk).messages[-1]
        print("stopped:", answer.status, "- quiesced:", receipt.quiesced is not None, "- abandoned:", receipt.abandoned)


if __name__ == "__main__":
    main()
