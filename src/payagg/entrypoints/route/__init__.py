"""`payagg route`: a reverse proxy that sends each request to the cell whose business it is about."""
