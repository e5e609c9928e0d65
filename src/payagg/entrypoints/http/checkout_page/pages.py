"""Rendering: one HTML template around each page's content, with the headers every page carries."""

import gzip
import hashlib
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import urlsplit

from litestar import Response

from payagg.application.schemas.payments import PublicPaymentDetail
from payagg.domain.errors import Kind, Refusal
from payagg.domain.simulator import SLOW, TEST_CARDS
from payagg.domain.values import Environment
from payagg.entrypoints.bootstrap import Services

HERE = Path(__file__).parent
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
ASSETS = {path.name: path.read_bytes() for path in sorted((HERE / "assets").iterdir()) if path.suffix in MEDIA_TYPES}
ZIPPED = {name: gzip.compress(body, mtime=0) for name, body in ASSETS.items()}  # data is dear on a phone
# One digest names them all, so that a module's relative import finds its own generation.
DIGEST = hashlib.sha256(b"\0".join(name.encode() + b"\0" + body for name, body in ASSETS.items())).hexdigest()[:16]
TEMPLATES = {path.stem: Template(path.read_text("utf-8")) for path in (HERE / "templates").glob("*.html")}

CARD_WORDS = {
    "success": "Succeeds",
    "declined": "Declined",
    "insufficient_funds": "Not enough funds",
    "reversed": "Reversed",
    "slow_success": f"Succeeds in {SLOW.seconds} s",
    "no_answer": "Never answers",
}
NOTICES = {
    Kind.INVALID: (
        "This payment link is not complete",
        "Check that the whole link was copied, or ask the merchant for a new one.",
    ),
    Kind.MISSING: ("We can't find this payment", "The link may be mistyped. Ask the merchant for a new payment link."),
    Kind.THROTTLED: ("Too many attempts", "Please wait a minute, then open the payment link again."),
}
NOTICE_OTHERWISE = (
    "We can't load this payment right now",
    "Nothing has been charged by opening this page. Please try again in a moment.",
)


def checkout(use_cases: Services, payment: PublicPaymentDetail) -> Response[bytes]:
    """The shell: what it shows comes from the public endpoints, but for the test banner, which must not jump in."""
    cards = "\n".join(
        TEMPLATES["card"].substitute(number=number, shown=_grouped(number), words=escape(CARD_WORDS[scenario]))
        for number, scenario in TEST_CARDS.items()
    )
    content = TEMPLATES["checkout"].substitute(
        _facts(use_cases, payment), cards=cards, live="" if payment.environment is Environment.SANDBOX else " hidden"
    )
    return _html(use_cases, "Payment", content, script="checkout.js", imports=("public.js", "view.js"))


def launch(use_cases: Services, payment: PublicPaymentDetail) -> Response[bytes]:
    """The page that runs the provider's own script; its address is the deployment's word, never the link's."""
    sdk = use_cases.settings.provider_b_sdk_url
    content = TEMPLATES["launch"].substitute(_facts(use_cases, payment), sdk=escape(sdk))
    return _html(use_cases, "Payment", content, script="launch.js", imports=("public.js",), provider=_origin(sdk))


def refused(use_cases: Services, refusal: Refusal, status: int) -> Response[bytes]:
    title, text = NOTICES.get(refusal.code.kind, NOTICE_OTHERWISE)
    content = TEMPLATES["notice"].substitute(title=escape(title), text=escape(text))
    response = _html(use_cases, title, content, status=status)
    if refusal.retry_after is not None:
        response.headers["Retry-After"] = str(refusal.retry_after)
    return response


def asset(digest: str, name: str, accepted: str) -> Response[bytes]:
    """A file of this generation for ever; of an older one the present file, uncached, so that an open page lives on."""
    body = ASSETS.get(name)
    if body is None:
        return Response(b"Not found", status_code=404, media_type="text/plain")
    cache = "public, max-age=31536000, immutable" if digest == DIGEST else "no-store"
    headers = {"Cache-Control": cache, "Cross-Origin-Resource-Policy": "same-origin", "Vary": "Accept-Encoding"}
    if "gzip" in (coding.strip() for coding in accepted.split(",")):
        body = ZIPPED[name]
        headers["Content-Encoding"] = "gzip"
    return Response(body, media_type=MEDIA_TYPES[Path(name).suffix], headers=headers)


def _facts(use_cases: Services, payment: PublicPaymentDetail) -> dict[str, str]:
    root, reference = _root(use_cases), escape(payment.reference)
    return {
        "reference": reference,
        "api": f"{root}/api/v1/public/payments/{reference}",
        "page": f"{root}/checkout/{reference}",
        "now": str(int(use_cases.clock.now().timestamp() * 1000)),
    }


def _html(
    use_cases: Services,
    title: str,
    content: str,
    *,
    script: str | None = None,
    imports: tuple[str, ...] = (),
    provider: str = "",
    status: int = 200,
) -> Response[bytes]:
    """`imports` are named beside the script, so that a slow phone fetches all of them at once."""
    assets = f"{_root(use_cases)}/checkout/assets/{DIGEST}"
    tags = [f'<link rel="modulepreload" href="{assets}/{name}">' for name in imports]
    tags += [f'<script type="module" src="{assets}/{script}"></script>'] if script else []
    body = TEMPLATES["page"].substitute(title=escape(title), assets=assets, content=content, script="\n".join(tags))
    return Response(body.encode(), status_code=status, media_type="text/html", headers=_headers(provider))


def _headers(provider: str) -> dict[str, str]:
    """Beside those the edge adds to every answer. `provider` is the one foreign origin a launch page admits."""
    foreign = f" {provider}" if provider else ""
    policy = [
        "default-src 'none'",
        f"script-src 'self'{foreign}",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        f"frame-src {provider}" if provider else "frame-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
        "base-uri 'none'",
    ]
    return {
        "Content-Security-Policy": "; ".join(policy),
        "Cache-Control": "no-store",
        "X-Frame-Options": "DENY",
        "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), usb=()",
        "X-Robots-Tag": "noindex, nofollow",
    }


def _root(use_cases: Services) -> str:
    """The path under which the deployment stands behind its proxy; empty for most."""
    return escape(urlsplit(use_cases.settings.base_url).path.rstrip("/"))


def _grouped(number: str) -> str:
    return " ".join(number[start : start + 4] for start in range(0, len(number), 4))


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
