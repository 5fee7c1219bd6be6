"""What trials say, and how surely: pure functions from trials to estimates, ratios and verdicts."""
