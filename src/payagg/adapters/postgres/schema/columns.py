"""Columns that many tables share, and the metadata of all."""

from typing import Any

from sqlalchemy import CheckConstraint, Column, DateTime, MetaData, Text

metadata = MetaData()


def at(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, DateTime(timezone=True), nullable=nullable)


def word(name: str, *words: str) -> list[Any]:
    listed = ", ".join(f"'{word}'" for word in words)
    return [Column(name, Text, nullable=False), CheckConstraint(f"{name} IN ({listed})", name=f"{name}_known")]
