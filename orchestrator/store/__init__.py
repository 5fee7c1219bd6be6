"""Where runs and trials are kept: the only SQL of devbench."""

from orchestrator.store.store import RunRecord, SessionRecord, Store, open_store

__all__ = ["RunRecord", "SessionRecord", "Store", "open_store"]
