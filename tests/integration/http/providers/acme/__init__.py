"""A third provider, whose folder is all that the product needs of it: docs/adding-a-provider.md shows its files."""

from payagg.adapters.providers.spec import Loaded, ProviderSpec
from payagg.application.ports.providers import Branding


def _load() -> Loaded:
    from tests.integration.http.providers.acme.adapter import Acme

    return Acme, None


ACME = ProviderSpec("acme", "acme", Branding("Acme Pay", "Card"), _load)
