"""payagg: a payment aggregator for merchants. `payagg.domain` needs nothing but the standard library."""
