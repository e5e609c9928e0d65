"""payagg: a payment aggregator for merchants. `payagg.domain` needs nothing but the standard library."""

__version__ = "0.1.0"
