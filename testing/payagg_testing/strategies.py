"""Hypothesis strategies for the domain's values: good ones, and ones just outside what is allowed."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from payagg.domain.payment import OUTCOMES, Payment
from payagg.domain.values import (
    MAX_AMOUNT,
    MIN_AMOUNT,
    REFERENCE_LENGTH,
    REFERENCE_SUFFIXES,
    Environment,
    make_reference,
)

DAY_ONE = datetime(2025, 1, 1)  # noqa: DTZ001 - Hypothesis takes naive bounds and adds the zone itself
LAST_DAY = datetime(2035, 12, 31)  # noqa: DTZ001
LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"

BAD_EMAILS = [
    "", "ada", "@example.com", "ada@", "ada@example", "ada@@example.com", ".ada@example.com", "a..da@example.com",
    "ada@-example.com", "ada@example.c", "ada @example.com", "ada@example.com\n",
    "ada@example.com\r\nBcc: eve@example.com", "ada@\u2460\u2461.example", "ada@\uff45xample.com",
    "ada\uff20b@example.com", "\u0300ada@example.com", "ọjà @example.com", "ọjà\u200b@example.com",
    "ọjà@exa_mple.com", "ọ" * 65 + "@example.com", "ada@" + "ọ" * 63 + ".example", "a" * 65 + "@example.com",
    "ada@" + ("a" * 60 + ".") * 4 + "example", "<ada@example.com>",
]  # fmt: skip
HOSTILE_URLS = [
    "", "javascript:alert(1)", "JavaScript://host/%0aalert(1)", "data:text/html,hello", "file:///etc/passwd",
    "ftp://host/", "//host/path", "/path", "host/path", "https:host", "https:/host", "https:///path", "https://",
    "https://:443/", "https://[:21]:8/", "https://[1.2.3.4]/",
    "https://user@host/", "https://user:word@host/", "https://@host/",
    "http://a@127.0.0.1:80\\@evil.example/", "https://host\\@evil.example/", "https://ho st/", "https://host/a b",
    " https://host/", "https://host/ ", "https://host/\r\nSet-Cookie: a=b", "https://host/\n", "https://host/\t",
    "https://host/\x00", "https://\u2460\u2461\u2466.0.0.1/", "https://\uff48ost/",
    "https://\u212bngstrom\uff0eexample/", "https://h\u00f6st\u3002example/", "https://h\u00f6st\u200d.example/",
    "https://\u0301host/", "https://xn--h\u00f6st/", "https://" + "\u00f6" * 63 + ".example/",
    "https://h\u00f6st:0/", "https://\u1ecdj\u00e0@h\u00f6st/", "https://host/\u00a0", "https://host/\u2028",
    "https://host/\u202egnp.exe", "https://host/\u0085", "https://host/\ud800", "https://host:0/",
    "https://host:65536/", "https://host:99999/", "https://host:port/", "https://[::1/", "https://[host]/",
    "https://.host/", "https://host..example/", "https://-host.example/", "https://" + "a" * 64 + ".example/",
    "https://" + "a." * 127 + "example/", "https://host/" + "a" * 2048, "https://host/<script>",
    'https://host/"onload="x',
]  # fmt: skip

environments = st.sampled_from(Environment)
bad_emails = st.sampled_from(BAD_EMAILS)
hostile_urls = st.sampled_from(HOSTILE_URLS)
outcomes = st.sampled_from(sorted(OUTCOMES))
instants = st.datetimes(DAY_ONE, LAST_DAY, timezones=st.just(UTC))
# Waits that land on, just before and just after the minute, the window's hour and days.
waits = st.sampled_from([0, 1, 29, 30, 59, 60, 1799, 1800, 3599, 3600, 3601, 86400]).map(lambda n: timedelta(seconds=n))

amounts = st.one_of(
    st.integers(MIN_AMOUNT, MAX_AMOUNT), st.sampled_from([MIN_AMOUNT, MIN_AMOUNT + 1, MAX_AMOUNT - 1, MAX_AMOUNT])
)

_words = st.text(LETTERS + DIGITS, min_size=1, max_size=12)
slugs = st.lists(_words, min_size=1, max_size=3).map("-".join).filter(lambda slug: 2 <= len(slug) <= 50)


def references(prefix: str = "PAY") -> SearchStrategy[str]:
    """References of any day, from the one function that makes them."""
    return st.builds(make_reference, st.just(prefix), instants, st.integers(0, REFERENCE_SUFFIXES - 1))


def bad_references(prefix: str = "PAY") -> SearchStrategy[str]:
    """Near misses: what a careless pattern lets through."""
    good = references(prefix)
    return st.one_of(
        good.map(lambda text: text + "\n"),
        good.map(lambda text: " " + text),
        good.map(str.lower),
        good.map(lambda text: text[:-1]),
        good.map(lambda text: text + "A"),
        good.map(lambda text: text.replace("-", "_")),
        good.map(lambda text: text[:11] + chr(0x0660 + int(text[11])) + text[12:]),  # Arabic-Indic
        good.map(lambda text: "PA1" + text[3:]),
        st.text(max_size=REFERENCE_LENGTH - 1),  # Hypothesis also draws what stands in our source
    )


emails = st.builds(
    lambda local, host, top: f"{local}@{host}.{top}",
    st.lists(st.text(LETTERS + DIGITS + "!#$%&'*+/=?^_`{|}~-", min_size=1, max_size=8), min_size=1, max_size=3).map(
        ".".join
    ),
    st.lists(_words, min_size=1, max_size=2).map(".".join),
    st.text(LETTERS, min_size=2, max_size=6),
)

urls = st.builds(
    lambda scheme, host, port, path: f"{scheme}://{host}{port}/{path}",
    st.sampled_from(["http", "https"]),
    st.lists(_words, min_size=1, max_size=3).map(".".join),
    st.sampled_from(["", ":1", ":8443", ":65535"]),
    st.text(LETTERS + DIGITS + "-._~/?&=%", max_size=20),
)

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
_leaves = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(-9.2e18, 9.2e18), texts)
metadata = st.dictionaries(
    st.text(LETTERS, min_size=1, max_size=8),
    st.one_of(
        _leaves,
        st.lists(_leaves, max_size=3),
        st.dictionaries(st.text(LETTERS, min_size=1, max_size=4), _leaves, max_size=3),
    ),
    max_size=6,
)


@st.composite
def payments(draw: st.DrawFn, environment: Environment | None = None) -> Payment:
    """A fresh INITIATED payment of one business."""
    return Payment.initiate(
        reference=draw(references()),
        business_id=draw(st.sampled_from(["biz_1", "biz_2"])),
        environment=environment or draw(environments),
        amount=draw(amounts),
        now=draw(instants),
        customer_email=draw(st.none() | emails),
        callback_url=draw(st.none() | urls),
        metadata=draw(st.none() | metadata),
    )
