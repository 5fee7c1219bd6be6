"""One timeline per trial, made from its record: what Perfetto and chrome://tracing open. Pure."""

from orchestrator.timeline.assemble import timeline_of as timeline_of
from orchestrator.timeline.events import Timeline as Timeline
from orchestrator.timeline.events import trace_events as trace_events
from orchestrator.timeline.log import Moments as Moments
from orchestrator.timeline.log import read_moments as read_moments
