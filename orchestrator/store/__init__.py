"""Where runs and trials are kept: the only SQL of devbench."""

from orchestrator.store.annals import Annals, Judgement, Note, Standing
from orchestrator.store.rows import RunRecord, SessionRecord
from orchestrator.store.store import Store, has_store, open_store

__all__ = ["Annals", "Judgement", "Note", "RunRecord", "SessionRecord", "Standing", "Store", "has_store", "open_store"]
