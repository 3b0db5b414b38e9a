# SPDX-License-Identifier: Apache-2.0
"""Refuses tests that were skipped without leave. Usage: skips.py BUILD/PRESET/tests.xml... (ctest --output-junit writes them)

A test that cannot find what it needs says so and is skipped. Here stands which may lack what, so that another that one day
finds nothing to test does not pass for one that passed.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as xml

MAY_SKIP = {  # preset/test, or preset/test: what it says: what it may lack
    r"(asan|minimal)/abi\.binary": "debug information about types",
    r"dev/abi\.binary: skipped: the baseline is of format .*": "the abidw that wrote the baseline",
    r".*/coexist\.torch|dev/profile\.torch": "an interpreter with PyTorch (HORUS_TEST_TORCH_PYTHON)",
    r"minimal/coexist\.horus_.*": "libxgboost, which is no package of that preset",
    r"minimal/faults\.tight": "a solver of linear programs",
    r".*/(features\.Zoo\.OperatorsAndParametersAreThoseOfPublishedExports|graph\.Oracle\.AgreesOnTheSharedGraphs"
    r"|io\.(.*AllocationGolden\..*|PotentialData\..*|TraceReal\..*))": "measurements and traces (HORUS_SHARED_DATA)",
    r".*/install\.release": "a checkout with its history, or a package whose licence is quoted",
}


def skipped(test):
    return test.get("status") == "notrun" or test.find("skipped") is not None


def main(files):
    refused = 0
    for file in map(pathlib.Path, files):
        tests = xml.parse(file).getroot().findall("testcase")
        if not tests:
            sys.exit(f"{file}: expected tests, found none")
        for test in filter(skipped, tests):
            name = f"{file.parent.name}/{test.get('name')}"
            said = f"{name}: {(test.findtext('system-out') or '').strip()}"
            lacks = next((lacks for pattern, lacks in MAY_SKIP.items()
                          if re.fullmatch(pattern, name) or re.fullmatch(pattern, said)), None)
            refused += lacks is None
            print(f"{name}: skipped, " + (f"for it may lack {lacks}" if lacks else "without leave"))
    if refused or not files:
        sys.exit(f"skips: {refused} tests of {len(files)} runs were skipped without leave")


if __name__ == "__main__":
    main(sys.argv[1:])
