"""`payagg completion bash`: completions from the parser."""

import argparse
from collections.abc import Iterator

from payagg.entrypoints.cli.arguments import parser
from payagg.entrypoints.cli.operators import say
from payagg.entrypoints.settings import Settings

SCRIPT = """_payagg() {{
    local word path='' words={first!r}
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$path/$word" in
{cases}
            *) continue ;;
        esac
        path="$path/$word"
    done
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _payagg payagg"""


def completion(_: argparse.Namespace, settings: Settings) -> int:
    (_path, first), *others = _words(parser(settings.extensions))
    cases = "\n".join(f"            {path}) words={words!r} ;;" for path, words in others)
    say(SCRIPT.format(first=first, cases=cases))
    return 0


def _words(command: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, str]]:
    """Each command's path with its options, commands and choices; the whole command comes first."""
    actions = command._actions
    named = [name for action in actions for name in action.option_strings or action.choices or ()]
    yield path, " ".join(named)
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield from _words(child, f"{path}/{name}")
