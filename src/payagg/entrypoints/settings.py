"""Settings from the environment (`PAYAGG_*`), checked at the start: a line names each wrong one."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from payagg.adapters.providers import PROVIDERS
from payagg.adapters.providers.spec import ProviderSpec
from payagg.application.ports.providers import ProviderEventRoute
from payagg.entrypoints import setting_kinds as kinds
from payagg.entrypoints.environment import PREFIX, text_of
from payagg.entrypoints.environment import SettingsError as SettingsError  # noqa: PLC0414 - all say it with settings
from payagg.entrypoints.extensions import NAMES, names_in, parse_names, parts
from payagg.entrypoints.setting_kinds import EncryptionKeys, Networks, SettingKind

Own = TypeVar("Own", bound="ExtensionSettings")
JWT_ALGORITHMS = ("EdDSA", "HS256", "RS256", "ES256")


def setting(default: str | None, kind: SettingKind, meaning: str, *, unset: str = "none", secret: bool = False) -> Any:
    """One that the environment may set: `default` is its text there; where it is None, `unset` says what then holds.

    It may also come from the file that the name with `_FILE` behind it gives. A secret is shown nowhere.
    """
    value: Any = None
    if default is not None:
        value = kind.read(default)
    elif kind in (kinds.NETWORKS, kinds.ORIGINS, kinds.ENCRYPTION_KEYS):
        value = ()
    about = {"default": default, "kind": kind, "meaning": meaning, "unset": unset, "secret": secret}
    return field(default=value, repr=not secret, metadata=about)


@dataclass(frozen=True)
class ExtensionSettings:
    """An extension's own: each field of its subclass is a `setting`."""

    def faults(self) -> Iterable[str]:
        """A line for each contradiction between them."""
        return ()


@dataclass(frozen=True)
class Settings:
    """Everything a deployment decides. `dev` alone may call providers and merchants on loopback."""

    jwt_key: str | None = setting(
        None, kinds.JWT_KEY, "key that verifies admin and merchant tokens: PEM, or for HS256 a secret", secret=True
    )
    jwt_algorithm: str = setting("EdDSA", kinds.one_of(*JWT_ALGORITHMS), "the one algorithm of tokens")
    jwt_jwks: str | None = setting(
        None,
        kinds.KEY_SET,
        "a JSON Web Key Set: a token's `kid` chooses the key; `PAYAGG_JWT_KEY` may be left out then",
    )
    jwt_issuer: str | None = setting(None, kinds.TEXT, "what a token's `iss` must be", unset="none: not checked")
    jwt_audience: str | None = setting(
        None, kinds.TEXT, "what a token's `aud` must hold", unset="none: a token must have none"
    )
    token_lifetime_max: timedelta = setting(
        "2592000", kinds.lasting("seconds", 7_776_000), "longest life of a token; a token that lives longer is refused"
    )
    encryption_keys: EncryptionKeys = setting(
        None, kinds.ENCRYPTION_KEYS, "keys of stored secrets: the first key encrypts, all decrypt", secret=True
    )
    database_url: str | None = setting(
        None,
        kinds.DATABASE_URL,
        "any Postgres 15 or newer; `payagg migrate` first",
        unset="none: the embedded Postgres 18",
        secret=True,
    )
    state_dir: Path = setting(".payagg", kinds.PATH, "folder of the embedded Postgres, logos and dev's keys")
    base_url: str = setting(
        "http://127.0.0.1:8000",
        kinds.BASE_URL,
        "origin of checkout links, https wherever others can reach it; never taken from a request; by default that of"
        " `dev` or `serve` on this machine; `dev` answers only under its host's name and loopback names",
    )
    reference_prefix: str = setting("PAY", kinds.PREFIX, "first letters of new references; old ones keep working")
    builtin_slug: str = setting("builtin", kinds.SLUG, "slug of the built-in gateway")
    providers: tuple[ProviderSpec, ...] = PROVIDERS
    checkout_ttl: timedelta = setting("3600", kinds.lasting("seconds", 2_592_000), "how long a checkout link is valid")
    drain_window: timedelta = setting("1800", kinds.lasting("seconds", 2_592_000), "how long a disabled gateway drains")
    shutdown_delay: timedelta = setting(
        "5",
        kinds.lasting("seconds", 300, least=0),
        "how long a server still serves after SIGTERM while `/readyz` says 503; `dev` and Ctrl-C skip it",
    )
    trusted_proxies: Networks = setting(None, kinds.NETWORKS, "proxies whose X-Forwarded-For counts")
    provider_networks: Networks = setting(
        None,
        kinds.NETWORKS,
        "where providers send events from, exempt from `PAYAGG_WEBHOOK_RATE_LIMIT`; set it before LIVE",
    )
    logo_store: str | None = setting(
        None, kinds.OBJECT_STORE, "where logos are", unset="none: a folder under the state"
    )
    # `process` of 64 payers at once took a median of 106 ms with ten connections, 76 with twenty and 64 with 32, of
    # which four processes would take more than the 100 that Postgres has by default.
    pool_size: int = setting("20", kinds.whole(1, 1_000), "most database connections of one process")
    pgbouncer: bool = setting(
        "false", kinds.YES_OR_NO, "`true` behind PgBouncer in transaction mode, for every command"
    )
    cors_origins: tuple[str, ...] = setting(None, kinds.ORIGINS, "origins whose scripts may read answers")
    payer_retention: timedelta = setting(
        "365", kinds.lasting("days", 36_500), "how long after a payment's end `payagg retention` keeps who paid"
    )
    idempotency_retention: timedelta = setting(
        "730",
        kinds.lasting("days", 36_500, least=30),
        "how long after a payment's end its idempotency key finds it; then the key makes a new payment",
    )
    # Requests in any minute; of an IPv6 client its /64, and its /48 at ten times the limit. These two are counted over
    # all processes,
    unknown_reference_limit: int = setting(
        "60",
        kinds.COUNT,
        "unknown references in any minute for each client address, over all processes; sign-ins at an issuer, too",
    )
    webhook_rate_limit: int = setting(
        "100",
        kinds.COUNT,
        "inbound events in any minute for each client address, over all processes",
    )
    # and these by each process for itself: they guard against load alone, and may not cost a statement.
    key_rate_limit: int = setting(
        "600000", kinds.COUNT, "requests a minute, and at once, for each secret key, in each process"
    )
    reference_rate_limit: int = setting(
        "1200", kinds.COUNT, "requests a minute, and at once, for each checkout link, in each process"
    )
    business_rate_limit: int = setting(
        "600000",
        kinds.COUNT,
        "requests a minute, and at once, with the secret keys of a business and environment, in each process",
    )
    sandbox_bytes_a_day: int = setting(
        "1000000000",
        kinds.BYTES,
        "bytes of bodies that a business may send with SANDBOX keys in a day, in each process",
    )
    live_bytes_a_day: int = setting(
        "100000000000", kinds.BYTES, "bytes of bodies that a business may send with LIVE keys in a day, in each process"
    )
    refused_body_limit: int = setting(
        "60",
        kinds.COUNT,
        "refused bodies of process a minute for each client address, in each process; good bodies pass",
    )
    # A carrier's payers may all be behind one address.
    address_rate_limit: int = setting(
        "60000", kinds.COUNT, "process and verify requests a minute for each client address, in each process"
    )
    metrics_token: str | None = setting(
        None,
        kinds.METRICS_TOKEN,
        "bearer token that `/metrics` requires",
        unset="none: `/metrics` is closed, except in `dev`",
        secret=True,
    )
    otel: bool = setting("false", kinds.YES_OR_NO, "`true` traces through OpenTelemetry (`pip install payagg[otel]`)")
    extensions: tuple[str, ...] = setting(
        ",".join(NAMES) or "none",
        SettingKind(f"`none`, or a comma list of {', '.join(NAMES)}", parse_names),
        "extensions of this installation",
    )
    own: tuple[ExtensionSettings, ...] = ()
    dev: bool = False

    def of(self, kind: type[Own]) -> Own:
        """An extension's settings; its defaults where none were read."""
        return next((one for one in self.own if isinstance(one, kind)), None) or kind()

    @property
    def reserved_slugs(self) -> frozenset[str]:
        """Slugs that no administrator's gateway may have. A provider's is not among them: its gateway is there from
        the start, and may be created again once it is deleted."""
        return frozenset({self.builtin_slug, "sandbox"})

    @property
    def event_routes(self) -> list[ProviderEventRoute]:
        """Every address at which providers' events arrive."""
        return [route for spec in self.providers for route in spec.routes]

    @property
    def sdk_url(self) -> str:
        """The script that our launch page runs; empty where no provider has one."""
        return next((spec.sdk_url for spec in self.providers if spec.sdk_url), "")

    def having(self, **values: Any) -> "Settings":
        """With other values, those of a provider named as the environment names them: `provider_a_slug`."""
        own = []
        for one in self.own:
            names = [field.name for field in dataclasses.fields(one)]
            own.append(dataclasses.replace(one, **{name: values.pop(name) for name in names if name in values}))
        providers = []
        for spec in self.providers:
            given = {part: values.pop(f"{spec.name}_{part}", getattr(spec, part)) for part in ("slug", "sdk_url")}
            providers.append(dataclasses.replace(spec, **given))
        return dataclasses.replace(self, **{"own": tuple(own), "providers": tuple(providers), **values})


def fields_of(extensions: Iterable[str] = NAMES) -> Iterator["dataclasses.Field[Any]"]:
    """Every setting of an installation with these extensions."""
    for one in chain(dataclasses.fields(Settings), *map(dataclasses.fields, parts(extensions, "settings"))):
        if one.metadata:
            yield one
        elif one.name == "providers":
            yield from dataclasses.fields(dataclasses.make_dataclass("_OfProviders", _of_providers()))


def _of_providers() -> Iterator[tuple[str, type, Any]]:
    for spec in PROVIDERS:
        meaning = f"gateway slug, inbound path and signature header of the {spec.branding.name} adapter"
        meaning += "; never change it once it has payments"
        yield f"{spec.name}_slug", str, setting(spec.slug, kinds.SLUG, meaning)


def variable(one: "dataclasses.Field[Any]") -> str:
    """The environment's name of a field of Settings."""
    return PREFIX + {
        "payer_retention": "PAYER_RETENTION_DAYS",
        "idempotency_retention": "IDEMPOTENCY_RETENTION_DAYS",
    }.get(one.name, one.name.upper())


def variables(extensions: Iterable[str] = NAMES) -> dict[str, "dataclasses.Field[Any]"]:
    """Every name that the environment may hold; that of a setting's file leads to the setting's field."""
    named = {variable(one): one for one in fields_of(extensions)}
    return named | {f"{name}_FILE": one for name, one in named.items()}


def read_settings(environ: Mapping[str, str], *, dev: bool = False) -> Settings:
    """Settings from `environ`; raises SettingsError with every fault. Secrets may be absent: see `require_secrets`."""
    extensions = names_in(environ)
    faults = list(_unknown(environ, variables(extensions)))
    values: dict[str, Any] = {}
    for one in fields_of(extensions):
        try:
            text, _ = find_setting(environ, one)
            if text is not None:
                values[one.name] = one.metadata["kind"].read(text)
        except SettingsError as fault:
            faults.append(str(fault))
        except kinds.Unfit as error:
            faults.append(f"{variable(one)} {error}.")
        except ValueError:  # whose words may repeat a secret
            faults.append(f"{variable(one)} must be {one.metadata['kind'].must}.")
    own = tuple(kind() for kind in parts(extensions, "settings"))
    settings = Settings(own=own).having(dev=dev, **values)
    faults += _contradictions(settings)
    if faults:
        raise SettingsError("\n".join(faults))
    return dataclasses.replace(settings, state_dir=settings.state_dir.absolute())


def find_setting(environ: Mapping[str, str], one: "dataclasses.Field[Any]") -> tuple[str | None, str]:
    """The text of a setting, None where it is not set, and where it comes from. Raises SettingsError."""
    return text_of(environ, variable(one), may_be_empty=one.metadata["kind"].may_be_empty)


def require_secrets(settings: Settings) -> None:
    """Raises SettingsError with each secret that a server needs and that is not set: there is no default secret."""
    missing = []
    if settings.jwt_key is None and settings.jwt_jwks is None:
        missing.append("PAYAGG_JWT_KEY or PAYAGG_JWT_JWKS is required: what verifies admin and merchant tokens.")
    if not settings.encryption_keys:
        missing.append("PAYAGG_ENCRYPTION_KEYS is required: a comma list of kid:base64, the first encrypts.")
    if missing:
        raise SettingsError("\n".join(f"{line} `payagg keygen` prints a new one." for line in missing))


def _unknown(environ: Mapping[str, str], known: Iterable[str]) -> Iterator[str]:
    for name in sorted(name for name in environ if name.startswith(PREFIX) and name not in known):
        if environ[name].startswith("tcp://") or name.startswith(f"{PREFIX}SERVICE_"):
            yield f"{name} is Kubernetes' own for a Service of this name: set enableServiceLinks to false for the pod."
            continue
        if name in variables():
            yield f"{name} is a setting of an extension that PAYAGG_EXTENSIONS leaves out."
            continue
        near = get_close_matches(name.removeprefix(PREFIX), [one.removeprefix(PREFIX) for one in known], 1, 0.7)
        yield f"{name} is not a setting" + (
            f": did you mean {PREFIX}{near[0]}?" if near else "; docs/operating/settings.md lists them."
        )


def _contradictions(settings: Settings) -> Iterator[str]:
    slugs = [settings.builtin_slug, *(spec.slug for spec in settings.providers), "sandbox"]
    if len(set(slugs)) != len(slugs):
        yield "PAYAGG_BUILTIN_SLUG and the providers' slugs must differ from each other and from 'sandbox'."
    for own in settings.own:
        yield from own.faults()
