"""The console for merchants and administrators: pages over our own API, which they call with the user's token."""

from payagg.entrypoints.extensions import Extension

EXTENSION = Extension(
    settings="settings:ConsoleSettings",
    services="console_sessions:console_over",
    routes="routes:routes",
    exception_handlers="page_request:EXCEPTION_HANDLERS",
    dev_pages="sign_in:dev_pages",
)
