"""An upgrade of the previous release to this one, and back, under load behind HAProxy."""
