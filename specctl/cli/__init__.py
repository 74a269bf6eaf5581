"""The commands: parse, call, render, exit; one file a command.

Belongs here: options, exit statuses, what goes to standard output and standard error.
Does not belong here: any rule, arithmetic or format; no torch outside a function body.
Who may enter: nobody; this is the top floor. It may import every room, heavy ones inside the function that needs them.
"""
