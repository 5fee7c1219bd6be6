"""Where runs and trials are kept: the only SQL of devbench."""

from orchestrator.store.rows import RunRecord, SessionRecord
from orchestrator.store.store import Store, open_store

__all__ = ["RunRecord", "SessionRecord", "Store", "open_store"]
