# SPDX-License-Identifier: Apache-2.0
"""What the recipes for package managers and CITATION.cff say agrees with the source: version, options, files.

Usage: recipes.py SOURCE"""

import json
import pathlib
import re
import sys


def main():
    source = pathlib.Path(sys.argv[1])
    header = (source / "include/horus/version.h").read_text(encoding="utf-8")
    version = ".".join(re.search(rf"#define HORUS_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))
    options = set(re.findall(r"^option\((HORUS_\w+)", (source / "CMakeLists.txt").read_text(encoding="utf-8"), re.M))
    assert {"HORUS_WITH_ONNX", "HORUS_WITH_TRAIN", "HORUS_WITH_LP", "HORUS_WITH_CLI"} <= options

    port = json.loads((source / "cmake/packaging/vcpkg/horus/vcpkg.json").read_text(encoding="utf-8"))
    assert port["version"] == version, f"vcpkg.json: version {port['version']}, expected {version}"
    assert set(port["default-features"]) <= set(port["features"])
    portfile = (source / "cmake/packaging/vcpkg/horus/portfile.cmake").read_text(encoding="utf-8")
    for feature in port["features"]:
        assert re.search(rf"^  {feature} HORUS_WITH_{feature.upper()}\b", portfile, re.M), f"portfile.cmake: no feature {feature}"

    conda = (source / "cmake/packaging/conda/meta.yaml").read_text(encoding="utf-8")
    assert f'set version = "{version}"' in conda, f"meta.yaml: expected version {version}"
    script = (source / "cmake/packaging/conda/build.sh").read_text(encoding="utf-8")
    named = set(re.findall(r"-D(HORUS_\w+)=", portfile + script))
    assert len(named) >= 4 and named <= options, f"options that are none: {named - options}"

    citation = (source / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version}\n" in citation, f"CITATION.cff: expected version {version}"

    changes = (source / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(version)} — ", changes, re.M), f"CHANGELOG.md has no section of {version}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
