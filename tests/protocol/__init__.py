"""Every interleaving, within bounds, of workers, servers and a reaper; see docs/protocol.md."""
