"""Settings from the environment (`PAYAGG_*`), checked at start: a wrong one is one clear line, never a surprise."""

import base64
import binascii
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from payagg.domain.errors import Refusal
from payagg.domain.values import SLUG_PATTERN, ascii_url, parse_url

JWT_ALGORITHMS = ("EdDSA", "HS256", "RS256", "ES256")
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
HMAC_KEY_MIN = 32  # bytes; shorter keys can be guessed offline from one token


class SettingsError(Exception):
    """One line for the operator, naming the setting."""


Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]


@dataclass(frozen=True)
class Settings:
    """Everything a deployment decides. `dev` alone may call providers and merchants on loopback."""

    database_url: str | None = None  # None = the embedded Postgres under state_dir
    base_url: str = "http://127.0.0.1:8000"
    reference_prefix: str = "PAY"
    builtin_slug: str = "builtin"
    provider_a_slug: str = "provider_a"
    provider_b_slug: str = "provider_b"
    provider_b_sdk_url: str = "https://checkout-v2.payaza.africa/js/v1/bundle.js"  # the script of the launch page
    checkout_ttl: timedelta = timedelta(hours=1)
    drain_window: timedelta = timedelta(minutes=30)
    jwt_key: str | None = field(default=None, repr=False)
    jwt_algorithm: str = "EdDSA"
    jwt_jwks: str | None = None  # path or URL of a JSON Web Key Set, whose keys are chosen by a token's kid
    jwt_issuer: str | None = None
    jwt_audience: str | None = None
    encryption_keys: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)
    trusted_proxies: Networks = ()
    provider_networks: Networks = ()  # whose events no limit holds back
    cors_origins: tuple[str, ...] = ()  # whose scripts may read answers
    name_servers: tuple[tuple[str, int], ...] = ()  # for merchants' hosts, address and port; none = the system's
    logo_store: str | None = None  # None = a folder under state_dir
    pool_size: int = 10  # connections per process
    pgbouncer: bool = False  # transaction pooling: no prepared statements kept
    # Requests in a minute. These two are counted over all processes, in any minute,
    unknown_reference_limit: int = 60  # per client address, on the public endpoints
    webhook_rate_limit: int = 100  # per client address, on the inbound routes; interface, Limits
    # and these by each process for itself: they guard against load alone, and may not cost a statement.
    key_rate_limit: int = 600_000  # per secret key
    business_rate_limit: int = 600_000  # with secret keys, per business and environment
    reference_rate_limit: int = 1_200  # of payers, per reference
    address_rate_limit: int = 60_000  # process and verify, per client address, behind which a carrier's payers may be
    payer_retention: timedelta = timedelta(days=365)  # after a payment's end, for `payagg retention`
    metrics_token: str | None = field(default=None, repr=False)  # bearer for /metrics; None = closed, but for `dev`
    otel: bool = False  # traces through OpenTelemetry
    state_dir: Path = Path(".payagg")
    dev: bool = False

    @property
    def reserved_slugs(self) -> frozenset[str]:
        """Slugs that no administrator's gateway may have. A provider's is not among them: its gateway is there from
        the start, and may be created again once it is deleted."""
        return frozenset({self.builtin_slug, "sandbox"})


def read_settings(environ: Mapping[str, str], *, dev: bool = False) -> Settings:
    """Settings from `environ`; raises SettingsError. Secrets may be absent here: see `require_secrets`."""

    def value(name: str, default: str) -> str:
        return environ.get(f"PAYAGG_{name}", "").strip() or default

    def wrong(name: str, why: str) -> SettingsError:
        return SettingsError(f"PAYAGG_{name} {why}")

    def seconds(name: str, default: int) -> timedelta:
        text = value(name, str(default))
        if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
            raise wrong(name, "must be a whole number of seconds, at least 1.")
        return timedelta(seconds=int(text))

    def count(name: str, default: int) -> int:
        text = value(name, str(default))
        if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
            raise wrong(name, "must be a whole number, at least 1.")
        return int(text)

    def networks(name: str) -> Networks:
        try:
            texts = [text.strip() for text in value(name, "").split(",")]
            return tuple(ipaddress.ip_network(text) for text in texts if text)
        except ValueError:
            raise wrong(name, "must be a comma list of networks, for example 10.0.0.0/8.") from None

    prefix = value("REFERENCE_PREFIX", "PAY")
    if not re.fullmatch(r"[A-Z]{3}", prefix):
        raise wrong("REFERENCE_PREFIX", "must be three letters A-Z.")
    slugs = {}
    # The two provider slugs are also a path segment and a header's middle, so an underscore is allowed there.
    for name, default in (
        ("BUILTIN_SLUG", "builtin"),
        ("PROVIDER_A_SLUG", "provider_a"),
        ("PROVIDER_B_SLUG", "provider_b"),
    ):
        slugs[name] = value(name, default)
        if not re.fullmatch(SLUG_PATTERN, slugs[name].replace("_", "-")) or not 2 <= len(slugs[name]) <= 50:
            raise wrong(name, "must be 2 to 50 of a-z, 0-9 and single hyphens or underscores.")
    if len({*slugs.values(), "sandbox"}) != len(slugs) + 1:
        raise wrong("PROVIDER_A_SLUG", "and the other slugs must differ from each other and from 'sandbox'.")
    base_url = value("BASE_URL", "http://127.0.0.1:8000").rstrip("/")
    try:
        parse_url(base_url, "base url")
    except Refusal as refusal:
        raise wrong("BASE_URL", refusal.message) from None
    sdk_url = value("PROVIDER_B_SDK_URL", Settings.provider_b_sdk_url)
    try:
        parse_url(sdk_url, "SDK url", ("http", "https") if dev else ("https",))
    except Refusal as refusal:
        raise wrong("PROVIDER_B_SDK_URL", refusal.message) from None
    algorithm = value("JWT_ALGORITHM", "EdDSA")
    if algorithm not in JWT_ALGORITHMS:
        raise wrong("JWT_ALGORITHM", f"must be one of {', '.join(JWT_ALGORITHMS)}.")
    jwt_key = environ.get("PAYAGG_JWT_KEY") or None
    if jwt_key is not None and algorithm == "HS256" and len(jwt_key.encode()) < HMAC_KEY_MIN:
        raise wrong("JWT_KEY", f"must be at least {HMAC_KEY_MIN} bytes for HS256.")
    jwks = value("JWT_JWKS", "") or None
    if jwks is not None and "://" in jwks and not _is_fetched_safely(jwks):
        raise wrong("JWT_JWKS", "must be a path, an https URL, or an http one of this machine.")
    return Settings(
        database_url=environ.get("PAYAGG_DATABASE_URL") or None,
        base_url=ascii_url(base_url),
        reference_prefix=prefix,
        builtin_slug=slugs["BUILTIN_SLUG"],
        provider_a_slug=slugs["PROVIDER_A_SLUG"],
        provider_b_slug=slugs["PROVIDER_B_SLUG"],
        provider_b_sdk_url=ascii_url(sdk_url),
        checkout_ttl=seconds("CHECKOUT_TTL", 3600),
        drain_window=seconds("DRAIN_WINDOW", 1800),
        jwt_key=jwt_key,
        jwt_algorithm=algorithm,
        jwt_jwks=jwks,
        jwt_issuer=value("JWT_ISSUER", "") or None,
        jwt_audience=value("JWT_AUDIENCE", "") or None,
        encryption_keys=_encryption_keys(environ.get("PAYAGG_ENCRYPTION_KEYS", "")),
        trusted_proxies=networks("TRUSTED_PROXIES"),
        provider_networks=networks("PROVIDER_NETWORKS"),
        cors_origins=_origins(value("CORS_ORIGINS", "")),
        name_servers=_name_servers(value("NAME_SERVERS", "")),
        logo_store=environ.get("PAYAGG_LOGO_STORE") or None,
        pool_size=count("POOL_SIZE", 10),
        pgbouncer=value("PGBOUNCER", "false").lower() == "true",
        unknown_reference_limit=count("UNKNOWN_REFERENCE_LIMIT", 60),
        webhook_rate_limit=count("WEBHOOK_RATE_LIMIT", 100),
        key_rate_limit=count("KEY_RATE_LIMIT", 600_000),
        business_rate_limit=count("BUSINESS_RATE_LIMIT", 600_000),
        reference_rate_limit=count("REFERENCE_RATE_LIMIT", 1_200),
        address_rate_limit=count("ADDRESS_RATE_LIMIT", 60_000),
        otel=value("OTEL", "0") == "1",
        payer_retention=timedelta(days=count("PAYER_RETENTION_DAYS", 365)),
        metrics_token=environ.get("PAYAGG_METRICS_TOKEN") or None,
        state_dir=Path(value("STATE_DIR", ".payagg")).absolute(),
        dev=dev,
    )


def require_secrets(settings: Settings) -> None:
    """Raises SettingsError unless the secrets a server needs are set: there is no default secret."""
    if settings.jwt_key is None and settings.jwt_jwks is None:
        raise SettingsError("PAYAGG_JWT_KEY or PAYAGG_JWT_JWKS is required: what verifies admin and merchant tokens.")
    if not settings.encryption_keys:
        raise SettingsError("PAYAGG_ENCRYPTION_KEYS is required: a comma list of kid:base64, the first encrypts.")


def _is_fetched_safely(url: str) -> bool:
    try:
        parse_url(url, "url")
    except Refusal:
        return False
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.hostname or "") in LOOPBACK


def _origins(text: str) -> tuple[str, ...]:
    """Origins as browsers send them, so that comparing them whole is right: no path, no wildcard, no default port."""
    origins = tuple(filter(None, (part.strip() for part in text.split(","))))
    for origin in origins:
        scheme, _, host = origin.partition("://")
        port = {"http": ":80", "https": ":443"}.get(scheme)
        if (
            port is None
            or host.endswith(port)
            or not re.fullmatch(r"(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?", host)
        ):
            raise SettingsError(
                "PAYAGG_CORS_ORIGINS must be a comma list of origins as browsers send them,"
                " for example https://shop.example,http://localhost:3000."
            )
    return origins


def _name_servers(text: str) -> tuple[tuple[str, int], ...]:
    servers = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::([0-9]{1,5}))?", part)
        try:
            if found is None:
                raise ValueError(part)
            address, port = ipaddress.ip_address(found[1] or found[2]), int(found[3] or 53)
            if not 1 <= port <= 65_535:
                raise ValueError(part)
        except ValueError:
            raise SettingsError(
                "PAYAGG_NAME_SERVERS must be a comma list of addresses, for example 9.9.9.9,[2620:fe::fe]:53."
            ) from None
        servers.append((str(address), port))
    return tuple(servers)


def _encryption_keys(text: str) -> tuple[tuple[str, bytes], ...]:
    keys = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        kid, _, encoded = item.partition(":")
        try:
            key = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", kid) or len(key) != 32:
            raise SettingsError("PAYAGG_ENCRYPTION_KEYS must be a comma list of kid:base64 with 32 bytes each.")
        keys.append((kid, key))
    if len({kid for kid, _ in keys}) != len(keys):
        raise SettingsError("PAYAGG_ENCRYPTION_KEYS must not name one kid twice.")
    return tuple(keys)
