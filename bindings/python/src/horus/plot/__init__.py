# SPDX-License-Identifier: Apache-2.0
"""Pictures of what the library answers, with matplotlib (the extra `plot`).

Each function takes the object that the library returns, or what `json.load` makes of the command's `--json`, and
returns the Axes it drew on: `ax` when given, else those of a new figure. Axes name their units. ValueError where there
is nothing to draw, or a value is not what it should be.
"""

from .events import Timeline, from_events, read_timeline
from .jct import jct_distribution
from .memory import step_memory
from .policies import policies
from .roofline import roofline
from .slowdown import slowdown_matrix
from .timeline import gpu_timeline
from .usage import fragmentation, utilisation

__all__ = [
    "Timeline", "fragmentation", "from_events", "gpu_timeline", "jct_distribution", "policies", "read_timeline",
    "roofline", "slowdown_matrix", "step_memory", "utilisation",
]
