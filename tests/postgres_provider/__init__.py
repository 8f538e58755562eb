"""
A real PostgreSQL for the tests, found or started on first use.

`plugin` holds the fixtures, `sources` the order in which a server is looked for,
`container` and `wheel` start one, and `keeper` stops it whatever happens to pytest.
"""
