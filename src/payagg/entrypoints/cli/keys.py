"""`payagg reseal`: a line for each kind of sealed data, with the keys that seal it."""

import argparse
from collections import Counter
from functools import partial

from payagg.entrypoints.cli.operators import operator, say, with_use_case
from payagg.entrypoints.settings import Settings, SettingsError


def reseal(options: argparse.Namespace, settings: Settings) -> int:
    """Exit status 1 when a blob is still under another key: it does not open, or a server with another first key just
    wrote it."""
    from payagg.adapters.security import AesVault
    from payagg.application.ports.upkeep import SealedKind
    from payagg.application.upkeep.reseal import Reseal, Resealed

    if not settings.encryption_keys:
        raise SettingsError(
            "PAYAGG_ENCRYPTION_KEYS is required: its first key is what everything is to be sealed under."
        )
    vault = AesVault(settings.encryption_keys)
    known = {kid for kid, _ in settings.encryption_keys}
    words = {
        SealedKind.GATEWAY_CREDENTIALS: "gateway credentials",
        SealedKind.REPLACED_SECRETS: "replaced signing secrets",
        SealedKind.ENDPOINT_CURRENT: "webhook secrets",
        SealedKind.ENDPOINT_PREVIOUS: "previous webhook secrets",
    }

    async def act(use: Reseal) -> tuple[Resealed, dict[SealedKind, Counter[str]]]:
        done = Resealed() if options.dry_run else await use.run(by=operator())
        return done, await use.count_by_key()

    done, counted = with_use_case(settings, partial(Reseal, vault=vault), act)
    for kind, name in words.items():
        keys = [
            f"{count} under {key}" + ("" if key in known else ", which is not in PAYAGG_ENCRYPTION_KEYS")
            for key, count in sorted(counted[kind].items())
        ]
        told = [f"{done.moved[kind]} sealed anew"] if not options.dry_run else []
        if done.closed[kind]:
            told.append(f"{done.closed[kind]} do not open")
        say(f"{name}: {'; '.join([*told, *keys]) or 'none'}")
    others = sum(number for keys in counted.values() for key, number in keys.items() if key != vault.sealing_key)
    if others:
        say(f"{others} are not under {vault.sealing_key}, the first key.")
    else:
        say(f"Everything is under {vault.sealing_key}, the first key.")
    return 1 if others and not options.dry_run else 0
