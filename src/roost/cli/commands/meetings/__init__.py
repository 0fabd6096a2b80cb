"""`roost meetings`: the commands of `call`, then those of `act`."""

from roost.cli.app.options import command_group
from roost.cli.commands.meetings import act, call

app = command_group()
app.registered_commands = [*call.app.registered_commands, *act.app.registered_commands]
