"""The tables of schema.sql as SQLAlchemy Core sees them: the names and types of their columns."""

import re
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Integer,
    Interval,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

from payagg.domain.payment import PAYER_FIELDS

SCHEMA = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
_TYPES: dict[str, Any] = {
    **{"text": Text(), "text[]": ARRAY(Text), "bytea": LargeBinary(), "jsonb": JSONB(), "boolean": Boolean()},
    **{"smallint": SmallInteger(), "integer": Integer(), "bigint": BigInteger()},
    **{"timestamptz": DateTime(timezone=True), "date": Date(), "interval": Interval()},
}
metadata = MetaData()
for _name, _body in re.findall(r"^CREATE (?:UNLOGGED )?TABLE (\w+) \((.*?)^\)", SCHEMA, re.MULTILINE | re.DOTALL):
    _columns = re.findall(r"^    ([a-z]\w*) ([a-z]+(?:\[\])?)", _body, re.MULTILINE)
    Table(_name, metadata, *(Column(column, _TYPES[kind]) for column, kind in _columns))

payments = metadata.tables["payments"]
attempts = metadata.tables["attempts"]

# Conditions of partial indexes: a planner compares the words, and a test these with schema.sql.
HAS_PAYER = " OR ".join(f"{name} IS NOT NULL" for name in PAYER_FIELDS)  # what retention looks for
IS_UNSETTLED = "next_ask_at IS NOT NULL AND gateway_id IS NOT NULL AND confirmed_at IS NULL"  # may have been paid
# Anomalies that a merchant may have to do something about.
MAY_NEED_ATTENTION = "kind IN ('DISPUTE', 'LATE_SUCCESS', 'SECOND_CHARGE', 'MISMATCH', 'NO_EVIDENCE')"
# Closed anomalies that have an end: of test money, and told to no merchant.
MAY_END = "status = 'CLOSED' AND environment = 'SANDBOX' AND event_sequence IS NULL"
HAS_BODY = "handled_at IS NOT NULL AND body <> ''"
