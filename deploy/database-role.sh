#!/bin/sh
# Makes payagg's role and database, as an administrator: the role owns its database and has no other right.
#   ROLE_PASSWORD_FILE=/etc/payagg/role-password PGHOST=db.example PGUSER=postgres sh database-role.sh [NAME]
# libpq's variables say where to connect; NAME is the name of both, by default payagg.
set -eu
: "${ROLE_PASSWORD_FILE:?names the file with the new role's password}"
export ROLE_PASSWORD_FILE PGUSER="${PGUSER:-${POSTGRES_USER:-postgres}}"
# psql reads the password itself: other accounts of the machine could see it among its arguments.
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --set name="${1:-payagg}" --dbname "${PGDATABASE:-postgres}" <<'SQL'
\set password `cat "$ROLE_PASSWORD_FILE"`
CREATE ROLE :"name" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD :'password';
GRANT :"name" TO CURRENT_USER;
CREATE DATABASE :"name" OWNER :"name" ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE :"name" FROM PUBLIC;
SQL
