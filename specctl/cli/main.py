"""The entry point: takes the setting flags out of the command line, then runs the one command that was named.

A command is a module of `COMMANDS` with a function `command(...)` that Typer can call; it is imported only when it is
invoked. The setting flags wait for it on the context: `ctx.obj` is a `specctl.cli.settings.Settings`."""

from __future__ import annotations

import errno
import gc
import importlib
import importlib.util
import io
import os
import sys
from typing import Any

import click
import typer
import typer.core

from specctl.cli.settings import SETTINGS_HELP, Settings
from specctl.errors import EXIT_MISSING, EXIT_USAGE, SpecctlError, UsageError
from specctl.source import flags

# name -> (module, one line of help). Help pages list them without importing any.
COMMANDS: dict[str, tuple[str, str]] = {
    "validate-config": ("specctl.cli.validate_config", "Say what is wrong with a setting before an engine is started."),
    "convert": ("specctl.cli.convert", "Write a setting in another engine's spelling."),
    "explain": ("specctl.cli.explain", "Print the page of one rule, or the definitions of the metrics."),
    "inspect": ("specctl.cli.inspect", "Say what a checkpoint is, and whether a draft fits it."),
    "plan": ("specctl.cli.plan", "Work out memory, ceilings, and where a draft stops paying."),
    "serve": ("specctl.cli.serve", "Serve a model with a setting, OpenAI-compatible."),
    "bench": ("specctl.cli.bench", "Measure settings against plain decoding."),
    "compare": ("specctl.cli.compare", "Compare the JSON files of several benches."),
    "report": ("specctl.cli.report", "Turn JSON files of benches into a page."),
    "presets": ("specctl.cli.presets", "List, show and check the presets."),
}
# Typer would put a backslash before each "[default: ...]" for rich, which does not print our help.
typer.core.HAS_RICH = False

TAKES_SETTINGS = ("validate-config", "convert", "plan", "serve", "bench")


def _exists(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


class Group(typer.core.TyperGroup):
    """A group that answers an unknown command with the nearest one, once, with any release of click."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """As click does, with a did-you-mean for an unknown name."""
        name = args[0] if args else ""
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f"did you mean {near[0]}?" if near else f"commands: {', '.join(self.list_commands(ctx))}"
            raise click.UsageError(f"no such command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(Group):
    """A group that knows its commands by name and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """The commands whose module is there, in the order of `COMMANDS`."""
        return [name for name, (module, _) in COMMANDS.items() if _exists(module)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The click command of `cmd_name`, or None."""
        if cmd_name not in COMMANDS or not _exists(COMMANDS[cmd_name][0]):
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        app = getattr(module, "app", None) or _single(module, cmd_name)
        return typer.main.get_command(app)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands from the table, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


def _single(module: Any, name: str) -> typer.Typer:
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name, help=COMMANDS[name][1], epilog=SETTINGS_HELP if name in TAKES_SETTINGS else None)(module.command)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        typer.echo(f"specctl {metadata.version('specctl')}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version and stop.", callback=_version, is_eager=True
    ),
) -> None:
    """Reads the speculative-decoding settings of vLLM, SGLang and TensorRT-LLM, says what is wrong with them, and
    runs them.
    """


def build() -> click.Command:
    """The click command of the whole program."""
    app = typer.Typer(
        cls=LazyGroup,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    return typer.main.get_command(app)


def main(argv: list[str] | None = None) -> None:
    """Run specctl; `argv` without the program's name (default: the process's own). Always ends in SystemExit."""
    gc.freeze()  # what the imports made lives as long as the process; the collector need not walk it
    status = run(list(sys.argv[1:] if argv is None else argv))
    gc.freeze()
    raise SystemExit(status)


def _prepare_streams() -> None:
    """Output never fails for a character that the terminal lacks, nor because the caller has closed a stream."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 (lives as long as the process)
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _give_up_stdout() -> None:
    """What is still buffered goes nowhere, so that the interpreter does not fail on it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _take_no_settings(taken: flags.Flags) -> None:
    """A setting before a command that has no use for one is an error, not a word that is lost."""
    name = next((word for word in taken.rest if not word.startswith("-")), "")
    if taken and name in COMMANDS and name not in TAKES_SETTINGS:
        typed = next((f"--spec {each}" for each in taken.specs), None) or next(
            (f"--config {each}" for each in taken.configs), None
        )
        what = typed or " ".join(taken.taken[0].tokens if taken.taken else ("--", *taken.engine_command))
        raise UsageError(f"{name} takes no setting, and {what} is one", help=f"leave it out; see specctl {name} --help")


def run(argv: list[str]) -> int:
    """Run one command line and return its exit status."""
    _prepare_streams()
    try:
        taken = flags.extract(argv)
        _take_no_settings(taken)
        outcome = build().main(args=list(taken.rest), prog_name="specctl", obj=Settings(taken), standalone_mode=False)
        sys.stdout.flush()  # here, where a full disk or a closed pipe is still ours to report
    except SpecctlError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return EXIT_USAGE if isinstance(error, click.UsageError) else error.exit_code
    except (click.Abort, KeyboardInterrupt):
        print("stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _give_up_stdout()
        return 0
    except OSError as error:
        if error.filename is not None or error.errno != errno.ENOSPC:
            raise
        _give_up_stdout()
        print(f"error: the output cannot be written: {error.strerror}", file=sys.stderr)
        return EXIT_MISSING
    return outcome if isinstance(outcome, int) else 0
