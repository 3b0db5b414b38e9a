# SPDX-License-Identifier: Apache-2.0
"""What a repaired wheel holds, needs and weighs. scripts/wheel names it in HORUS_WHEEL and runs the other tests on it too."""

import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHEEL = os.environ.get("HORUS_WHEEL")
pytestmark = pytest.mark.skipif(not WHEEL, reason="no wheel to check (scripts/wheel makes one)")
MOST_BYTES = 15 * 2**20
# What every Linux of the tag brings; the rest lies in the wheel.
OF_THE_SYSTEM = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0",
                 "librt.so.1", "libdl.so.2"}


@pytest.fixture(scope="module")
def names():
    with zipfile.ZipFile(WHEEL) as wheel:
        return set(wheel.namelist())


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(WHEEL) as wheel:
        return [pathlib.Path(wheel.extract(name, folder)) for name in wheel.namelist() if ".so" in name]


def dynamic(library):
    return subprocess.run(["readelf", "-dW", library], capture_output=True, text=True, check=True).stdout


def test_it_weighs_less_than_15_mib():
    assert pathlib.Path(WHEEL).stat().st_size < MOST_BYTES


def test_its_name_states_version_and_platform():
    text = (ROOT / "include/horus/version.h").read_text()
    version = ".".join(re.search(rf"#define HORUS_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH"))
    assert re.fullmatch(rf"libhorus-{re.escape(version)}-cp3(\d+)-cp3\1-manylinux_2_\d+_x86_64\.whl", pathlib.Path(WHEEL).name)


def test_every_file_of_the_package_is_inside(names):
    source = ROOT / "bindings/python/src"
    files = {str(path.relative_to(source)) for path in (source / "horus").rglob("*")
             if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"}
    assert {"horus/py.typed", "horus/_core.pyi"} <= files <= names


def test_it_needs_neither_xgboost_nor_openmp_nor_anything_else(libraries):
    inside = {library.name for library in libraries}
    assert len(inside) > 1
    for library in libraries:
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic(library)))
        assert needed <= inside | OF_THE_SYSTEM, library.name
    assert not [name for name in inside if re.search(r"xgboost|gomp|libomp|iomp|libhorus", name)]


def test_its_libraries_bear_names_of_their_own(libraries):
    for library in libraries:
        if library.parent.name == "horus":
            continue
        soname = re.search(r"\(SONAME\).*\[(.*)\]", dynamic(library))[1]
        assert soname == library.name and re.search(r"-[0-9a-f]{8}\.so", soname)


def test_the_module_gives_its_init_function_alone(libraries):
    (module,) = [library for library in libraries if library.name.startswith("_core.")]
    symbols = subprocess.run(["nm", "-D", "--defined-only", module], capture_output=True, text=True, check=True).stdout
    assert [line.split()[-1] for line in symbols.splitlines()] == ["PyInit__core"]


def test_its_module_is_hardened(libraries, tmp_path):
    (module,) = [library for library in libraries if library.name.startswith("_core.")]
    check = ROOT / "tests/hardening/check_hardening.py"
    found = subprocess.run([sys.executable, check, "compiled", tmp_path, module], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


def test_the_tests_run_on_it(horus):
    assert "/wheel/" in horus.__file__, "another horus is tested"
