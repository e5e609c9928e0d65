"""What statements take from schema.sql: the columns of each table, with their types, and conditions of its indexes."""

import re
from pathlib import Path

from payagg.domain.payment import PAYER_FIELDS

SCHEMA = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
COLUMNS = {
    table: dict(re.findall(r"^    ([a-z]\w*) ([a-z]+(?:\[\])?)", body, re.MULTILINE))
    for table, body in re.findall(r"^CREATE (?:UNLOGGED )?TABLE (\w+) \((.*?)^\)", SCHEMA, re.MULTILINE | re.DOTALL)
}

# A planner compares the words, and a test these with schema.sql.
HAS_PAYER = " OR ".join(f"{name} IS NOT NULL" for name in PAYER_FIELDS)  # what retention looks for
IS_UNSETTLED = "next_ask_at IS NOT NULL AND gateway_id IS NOT NULL AND confirmed_at IS NULL"  # may have been paid
# Anomalies that a merchant may have to do something about.
MAY_NEED_ATTENTION = "kind IN ('DISPUTE', 'LATE_SUCCESS', 'SECOND_CHARGE', 'MISMATCH', 'NO_EVIDENCE')"
# Closed anomalies that have an end: of test money, and told to no merchant.
MAY_END = "status = 'CLOSED' AND environment = 'SANDBOX' AND event_sequence IS NULL"
HAS_BODY = "handled_at IS NOT NULL AND body <> ''"
