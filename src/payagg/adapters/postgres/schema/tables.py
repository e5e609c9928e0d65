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

businesses = metadata.tables["businesses"]
members = metadata.tables["members"]
api_keys = metadata.tables["api_keys"]
gateways = metadata.tables["gateways"]
business_gateways = metadata.tables["business_gateways"]
audit = metadata.tables["audit"]
token_revocations = metadata.tables["token_revocations"]
console_sessions = metadata.tables["console_sessions"]
payments = metadata.tables["payments"]
expiry_progress = metadata.tables["expiry_progress"]
idempotency_keys = metadata.tables["idempotency_keys"]
transitions = metadata.tables["transitions"]
attempts = metadata.tables["attempts"]
provider_calls = metadata.tables["provider_calls"]
anomalies = metadata.tables["anomalies"]
resolutions = metadata.tables["resolutions"]
provider_health = metadata.tables["provider_health"]
inbox = metadata.tables["inbox"]
refused_events = metadata.tables["refused_events"]
webhook_endpoints = metadata.tables["webhook_endpoints"]
events = metadata.tables["events"]
event_metadata = metadata.tables["event_metadata"]
deliveries = metadata.tables["deliveries"]
reconciliation_runs = metadata.tables["reconciliation_runs"]
reconciliation_findings = metadata.tables["reconciliation_findings"]
archive_parts = metadata.tables["archive_parts"]
archived_payments = metadata.tables["archived_payments"]
rate_hits = metadata.tables["rate_hits"]
tallies = metadata.tables["tallies"]

# Conditions of partial indexes: a planner compares the words, and a test these with schema.sql.
HAS_PAYER = " OR ".join(f"{name} IS NOT NULL" for name in PAYER_FIELDS)  # what retention looks for
IS_UNSETTLED = "next_ask_at IS NOT NULL AND gateway_id IS NOT NULL AND confirmed_at IS NULL"  # may have been paid
# Anomalies that a merchant may have to do something about.
MAY_NEED_ATTENTION = "kind IN ('DISPUTE', 'LATE_SUCCESS', 'SECOND_CHARGE', 'MISMATCH', 'NO_EVIDENCE')"
# Closed anomalies that have an end: of test money, and told to no merchant.
MAY_END = "status = 'CLOSED' AND environment = 'SANDBOX' AND event_sequence IS NULL"
HAS_BODY = "handled_at IS NOT NULL AND body <> ''"
