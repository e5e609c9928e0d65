"""The shipped builders, under the name tests import them by."""

from payagg.testing.builders import (
    NOW,
    REFERENCE,
    a_business,
    a_choice,
    a_delivery,
    a_gateway,
    a_key,
    a_payment,
    a_report,
    a_transition,
    an_attempt,
    an_endpoint,
    an_event,
    an_expired_payment,
    an_id,
    the_built_in,
)

__all__ = [
    "NOW",
    "REFERENCE",
    "a_business",
    "a_choice",
    "a_delivery",
    "a_gateway",
    "a_key",
    "a_payment",
    "a_report",
    "a_transition",
    "an_attempt",
    "an_endpoint",
    "an_event",
    "an_expired_payment",
    "an_id",
    "the_built_in",
]
