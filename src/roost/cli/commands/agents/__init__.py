"""`roost agents`."""

from roost.cli.app.options import command_group
from roost.cli.commands.agents import inspect, lifecycle, memories, settings

app = command_group()
for _part in (inspect, settings, lifecycle, memories):
    app.registered_commands += _part.app.registered_commands
