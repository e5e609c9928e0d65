"""Names for people: of the API's ids and slugs, and an audit entry in words."""

import re
from collections.abc import Mapping
from typing import Any

from payagg.application.gateways.payment_options import SIMULATOR_OPTION
from payagg.extensions.console.api import ApiRefused
from payagg.extensions.console.page_request import BusinessContext, PageRequest

Names = Mapping[str, str]
KINDS = {"api_key": "API key", "webhook": "webhook endpoint"}


async def names_of(request: PageRequest, context: BusinessContext | None) -> Names:
    """By id, gateways by slug too; with a `context` also the business's keys and endpoints. What the API does not show
    to this user has no name here."""
    names = {spec.slug: spec.branding.name for spec in request.services.settings.providers}
    names[SIMULATOR_OPTION.slug] = SIMULATOR_OPTION.name
    for one in await _fetch_list(request, f"{context.api}/gateways" if context else "/admin/gateways"):
        names |= {one["slug"]: one["name"], one["id"]: one["name"]}
    if context:
        names[context.business["id"]] = context.business["name"]
        for keys in (await _fetch_list(request, f"{context.api}/api-keys")).values():
            names |= {one["id"]: one["name"] for one in keys}
        names |= {one["id"]: one["url"] for one in await _fetch_list(request, f"{context.api}/webhooks")}
    return names


async def _fetch_list(request: PageRequest, path: str) -> Any:
    try:
        return await request.api.get(path)
    except ApiRefused as refused:
        if refused.status != 403:
            raise
        return {}  # a restricted business's keys


def who(actor: str, names: Names) -> str:
    """An actor of the API's: `key:key_...` is "Shop server (API key)", `event:provider_a` "event of Paystack"."""
    realm, _, subject = actor.partition(":")
    if realm == "key":
        return f"{names[subject]} (API key)" if subject in names else f"API key ...{subject[-6:]}"
    if realm == "event":
        return f"event of {names.get(subject, subject)}"
    return {"merchant": subject, "clock": "the service"}.get(realm, actor.replace("admin:", "administrator "))


def action(word: str) -> str:
    """`api_key.create` is "API key: create"."""
    kind, _, verb = word.partition(".")
    return f"{KINDS.get(kind, _words(kind))}: {_words(verb)}"


def change(field: str, before: Any, after: Any, names: Names) -> str:
    """`isEnabled`, False, True is "is enabled: no → yes"; a new or removed field shows its one value."""
    shown = [_value(value, names) for value in (before, after) if value is not None]
    gone = " (removed)" if after is None and before is not None else ""
    name = _words(re.sub("([A-Z])", r"_\1", field))
    return f"{name}: {' → '.join(shown)}{gone}"


def _value(value: Any, names: Names) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_value(one, names) for one in value) or "all"  # as in `line_of`
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(one, names)}" for name, one in value.items())
    return names.get(str(value), str(value))


def _words(name: str) -> str:
    return name.replace("_", " ").strip().lower()
