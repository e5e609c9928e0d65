"""Every route that takes a body says how many bytes, and no fewer than its fields may need."""

from typing import Any

import pytest
from msgspec import inspect

from payagg.domain.payment import METADATA_BYTES_MAX
from payagg.entrypoints.http.app import api_routes
from tools.openapi.operations import Route, routes_of

ROUTES = [route for route in routes_of(api_routes()) if route.operation.body is not None or route.operation.upload]
ESCAPED = 12  # bytes of the longest character: two escapes of six
PLAIN = 4
NAME_MAX = 64  # characters of an id, which no schema bounds
# Their free text alone would be 49 KiB of escapes; what programs send unescaped fits.
MEASURED_PLAIN = {"initiatePayment", "createTestPayment"}


def largest(kind: Any, character: int) -> int:
    """Bytes of the longest JSON without spaces that is of this type."""
    match kind:
        case inspect.StructType():
            return 2 + sum(len(field.encode_name) + 4 + largest(field.type, character) for field in kind.fields)
        case inspect.StrType():
            is_ascii = kind.max_length is None or kind.pattern is not None
            return 2 + (kind.max_length or NAME_MAX) * (1 if is_ascii else character)
        case inspect.EnumType():
            return 2 + max(len(str(member.value)) for member in kind.cls)
        case inspect.ListType():
            return 2 + (kind.max_length or 0) * (1 + largest(kind.item_type, character))
        case inspect.DictType() if isinstance(kind.value_type, inspect.AnyType):
            return METADATA_BYTES_MAX
        case inspect.DictType():
            entry = 4 + NAME_MAX * character + largest(kind.value_type, character)
            return 2 + (kind.max_length or 0) * entry
        case inspect.UnionType():
            return max(largest(one, character) for one in kind.types)
        case inspect.Metadata():
            return largest(kind.type, character)
        case _:
            return 20  # an integer, true, false, null


@pytest.mark.rule("limits.23")
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.id)
def test_every_cap_takes_the_longest_body_that_its_fields_allow(route: Route) -> None:
    operation = route.operation
    if operation.upload is not None:
        assert operation.body_max > operation.upload_max
    elif operation.body is bytes:
        assert operation.body_max == 1024 * 1024
    else:
        character = PLAIN if route.id in MEASURED_PLAIN else ESCAPED
        assert largest(inspect.type_info(operation.body), character) <= operation.body_max
