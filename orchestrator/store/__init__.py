"""Where runs and trials are kept: the only SQL of devbench."""

from orchestrator.store.rows import RunRecord, SessionRecord
from orchestrator.store.store import Store, has_store, open_store

__all__ = ["RunRecord", "SessionRecord", "Store", "has_store", "open_store"]
