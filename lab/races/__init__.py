"""What may happen to one payment at the same moment, pair by pair, between two servers."""
