"""The domain's ports kept by technology: storages, the wire, clocks."""
