"""The service written by hand with one thing wrong each, for what is tried by URL: the docstring says what."""

from lab.defects.services.http import Reply, Row
from lab.defects.services.payments import FINAL, Handmade


class ReopensFinalPayments(Handmade):
    """A second simulated outcome replaces the first."""

    def simulate(self, reference: str) -> Reply:
        payment = self.payments.get(reference)
        if payment is not None and payment["status"] in FINAL:
            payment["status"] = "INITIATED"
        return super().simulate(reference)


class SharesKeysAcrossEnvironments(Handmade):
    """Idempotency keys are unique for both environments together."""

    def slot(self, business: str, environment: str, key: str | None) -> object:
        return business, key


class ReplaysAsCreated(Handmade):
    """A replay is answered with 201."""

    def replay(self, original: Row) -> Reply:
        return 201, super().replay(original)[1]


class LooksAtTheFirstBytes(Handmade):
    """An upload that broke off is taken for an image, as it begins like one."""

    def kind_of(self, content: bytes, claimed: str) -> str | None:
        whole = super().kind_of(content, claimed)
        return whole or ("image/png" if content.startswith(b"\x89PNG") else None)


class LetsBrowsersSniff(Handmade):
    """The header is left out that keeps browsers from guessing a type."""

    def logo_headers(self, kind: str) -> dict[str, str]:
        return {name: value for name, value in super().logo_headers(kind).items() if not name.startswith("x-")}


class AsksForKobo(Handmade):
    """The popup is opened with kobo, where it takes naira."""

    def naira(self, kobo: int) -> float:
        return kobo


class TellsRemovedEndpoints(Handmade):
    """A removed endpoint still gets events."""

    def wants(self, endpoint: Row, payment: Row, kind: str) -> bool:
        return super().wants(endpoint | {"isActive": True}, payment, kind)

    def work(self) -> None:
        self.outbox = [one for one in self.outbox if not self.deliver(one)]
