"""Businesses that move to another cell: what is on its way, and where it went.

moved_businesses, moved_keys, moved_payments   an outbox while `rows` is there, and a signpost from then on.
refuse_while_moving                            nothing of a business changes while it moves, but its payments.
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

# As of a lost race (40001), so that the caller tries again, and says 503 in the end. The lock is the one that a foreign
# key takes: whoever closes the business holds a stronger one, and is waited for before its row is looked for. With its
# own search path, since a restore has none.
REFUSE = """
CREATE FUNCTION refuse_while_moving() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    whose TEXT := to_jsonb(NEW) ->> TG_ARGV[0];
BEGIN
    PERFORM FROM businesses WHERE id = whose FOR KEY SHARE;
    IF EXISTS (SELECT FROM moved_businesses WHERE business_id = whose AND state <> 'LEFT') THEN
        RAISE EXCEPTION 'the business is moving to another cell' USING ERRCODE = '40001', TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NEW;
END $$
"""
# What a dispatcher counts of an endpoint, and when a key was used last, changes all the while.
KEY = "name, status, revoked_at"
ENDPOINT = "url, description, events, secret, previous_secret, previous_secret_expires_at, last_test_at, removed_at"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE moved_businesses (
            business_id TEXT NOT NULL PRIMARY KEY,
            cell TEXT NOT NULL,
            state TEXT NOT NULL CONSTRAINT state_known CHECK (state IN ('LEAVING', 'MOVING', 'LEFT', 'ARRIVING')),
            rows JSONB,
            at TIMESTAMP WITH TIME ZONE NOT NULL
        )
    """)
    op.execute("""
        CREATE TABLE moved_keys (
            secret_hash BYTEA NOT NULL PRIMARY KEY,
            business_id TEXT NOT NULL,
            cell TEXT NOT NULL,
            rows JSONB,
            at TIMESTAMP WITH TIME ZONE NOT NULL
        )
    """)
    op.execute("CREATE INDEX moved_keys_of_business ON moved_keys (business_id)")
    op.execute("""
        CREATE TABLE moved_payments (
            reference TEXT NOT NULL PRIMARY KEY,
            business_id TEXT NOT NULL,
            cell TEXT NOT NULL,
            rows JSONB,
            at TIMESTAMP WITH TIME ZONE NOT NULL
        )
    """)
    op.execute(
        "CREATE INDEX moved_payments_under_way ON moved_payments (business_id, reference) WHERE rows IS NOT NULL"
    )
    op.execute(REFUSE)
    for table, column, event in (
        ("businesses", "id", "UPDATE"),
        ("members", "business_id", "INSERT OR UPDATE"),
        ("api_keys", "business_id", f"INSERT OR UPDATE OF {KEY}"),
        ("business_gateways", "business_id", "INSERT OR UPDATE"),
        ("webhook_endpoints", "business_id", f"INSERT OR UPDATE OF {ENDPOINT}"),
    ):
        op.execute(
            f"CREATE TRIGGER {table}_while_moving BEFORE {event} ON {table}"
            f" FOR EACH ROW EXECUTE FUNCTION refuse_while_moving('{column}')"
        )
