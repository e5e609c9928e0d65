"""A target that needs no URL: payagg over a store in this process, or what a function of yours opens."""

from importlib import import_module

from payagg_testing.conformance.access import AccessError
from payagg_testing.conformance.target import ConformanceTarget

# Named and not imported: the harness is used where there is no server, too.
OURS = "tests.support.in_process:target"
WORDS = "`memory`, a postgresql:// URL, or MODULE:FUNCTION that gives a ConformanceTarget"


def open_target(over: str) -> ConformanceTarget:
    """`memory`, or a migrated test database's `postgresql://` URL: payagg in this process.
    `MODULE:FUNCTION`: what that function of yours returns. Raises AccessError with the reason when it does not open."""
    if over == "memory":
        return _target_at(OURS)
    if over.startswith(("postgresql://", "postgres://")):
        return _target_at(OURS, over)
    return _target_at(over)


def _target_at(place: str, *arguments: str) -> ConformanceTarget:
    module, _, name = place.partition(":")
    if not (module and name):
        raise AccessError(f"{place!r} is none of {WORDS}")
    try:
        target = getattr(import_module(module), name)(*arguments)
    except ModuleNotFoundError as error:
        raise AccessError(f"there is no module {error.name}") from None
    except AttributeError as error:
        if getattr(error, "name", None) != name:
            raise
        raise AccessError(f"{module} has no {name}") from None
    if not isinstance(target, ConformanceTarget):
        raise AccessError(f"{place} gave no ConformanceTarget")
    return target
