"""Services written by hand with one thing wrong each: logos."""

from tests.zoo.by_hand import Handmade


class BelievesTheContentType(Handmade):
    """What is called an image is stored as one."""

    machine = "logos"

    def kind_of(self, content: bytes, claimed: str) -> str | None:
        return claimed if claimed in ("image/png", "image/jpeg") else None


class LooksAtTheFirstBytes(Handmade):
    """An upload that broke off is taken for an image, as it begins like one."""

    machine = "logos"

    def kind_of(self, content: bytes, claimed: str) -> str | None:
        whole = super().kind_of(content, claimed)
        return whole or ("image/png" if content.startswith(b"\x89PNG") else None)


class TakesLogosOfAnySize(Handmade):
    """The size of a logo is not looked at."""

    machine = "logos"

    def largest(self) -> int:
        return 2**40


class KeepsTheOtherType(Handmade):
    """A file is kept for each type, and the PNG is shown though a JPEG replaced it."""

    machine = "logos"

    def keep_logo(self, id: str, content: bytes, kind: str) -> None:
        if kind == "image/png" or self.logos.get(id, (b"", kind))[1] == kind:
            super().keep_logo(id, content, kind)


class ServesEveryLogoAsPng(Handmade):
    """Logos are served as image/png, whatever they are."""

    machine = "logos"

    def logo_headers(self, kind: str) -> dict[str, str]:
        return super().logo_headers("image/png")


class LetsBrowsersSniff(Handmade):
    """The header is left out that keeps browsers from guessing a type."""

    machine = "logos"

    def logo_headers(self, kind: str) -> dict[str, str]:
        return {name: value for name, value in super().logo_headers(kind).items() if not name.startswith("x-")}
