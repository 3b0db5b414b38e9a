# SPDX-License-Identifier: Apache-2.0
"""Runs the first Python example of a page as a new user would, with nothing but horus and numpy.

Usage: first_example.py [--bundled] PAGE.md    --bundled: no library of the system but the base ones may be loaded"""

import re
import sys

page = sys.argv[-1]
with open(page, encoding="utf-8") as file:
    match = re.search(r"```python\n(.*?)```", file.read(), re.DOTALL)
if match is None:
    sys.exit(f"{page}: no Python example")
exec(compile(match[1], page, "exec"), {"__name__": "__main__"})

with open("/proc/self/maps", encoding="utf-8") as file:
    mapped = {line.split()[-1] for line in file if ".so" in line}
if "--bundled" in sys.argv:
    inside = [path for path in mapped if re.search("protobuf|absl", path)]
    foreign = [path for path in inside if not path.startswith(sys.prefix)]
    if not inside or foreign:
        sys.exit(f"expected protobuf and abseil below {sys.prefix}, found {sorted(foreign)}")
