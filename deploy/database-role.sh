#!/bin/sh
# The role and the database of payagg, as an administrator makes them: the role owns its database and is nothing else.
#   ROLE_PASSWORD_FILE=/etc/payagg/role-password PGHOST=db.example PGUSER=postgres sh database-role.sh [NAME]
# Connects as libpq's variables say; NAME is that of both, payagg where it is left out.
set -eu
: "${ROLE_PASSWORD_FILE:?names the file with the new role's password}"
export ROLE_PASSWORD_FILE PGUSER="${PGUSER:-${POSTGRES_USER:-postgres}}"
# psql reads the password itself: among its arguments other accounts of the machine could see it.
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --set name="${1:-payagg}" --dbname "${PGDATABASE:-postgres}" <<'SQL'
\set password `cat "$ROLE_PASSWORD_FILE"`
CREATE ROLE :"name" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD :'password';
GRANT :"name" TO CURRENT_USER;
CREATE DATABASE :"name" OWNER :"name" ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE :"name" FROM PUBLIC;
SQL
