"""The wire: the only package that knows protobuf."""
