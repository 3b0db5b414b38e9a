# SPDX-License-Identifier: Apache-2.0
"""Makes the Debian packages of a build and reads them: names, versions, dependencies, files. Ends with 77 without dpkg.

Usage: packages.py CPACK BUILD WORK SOVERSION COMPONENT..."""

import pathlib
import shutil
import subprocess
import sys

# Package and ends of paths that it must have; {so} is the version of the SONAME.
FILES = {
    "library": ("libhorus{so}", ["/libhorus.so.{so}"]),
    "dev": ("libhorus-dev", ["/include/horus/horus.h", "/libhorus.so", "/libhorus.a", "/horusConfig.cmake",
                             "/horusStaticTargets.cmake", "/pkgconfig/horus.pc"]),
    "lab": ("libhorus-lab{so}", ["/libhorus_lab.so.{so}", "/libhorus_lab.so", "/horusLabTargets.cmake",
                                 "/pkgconfig/horus_lab.pc"]),
    "train": ("libhorus-train{so}", ["/libhorus_train.so.{so}"]),
    "lp": ("libhorus-lp{so}", ["/libhorus_lp.so.{so}"]),
    "command": ("horus", ["/bin/horus", "/share/horus/profile/horus-profile", "/share/man/man1/horus.1.gz",
                          "/share/bash-completion/completions/horus", "/share/zsh/vendor-completions/_horus"]),
}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read(package):
    """Its control fields, its files, and what dpkg says of it, with the names of its control files."""
    lines = output("dpkg-deb", "--field", package).splitlines()
    fields = dict(line.split(": ", 1) for line in lines if line and line[0] != " ")
    rows = [line.split(None, 5) for line in output("dpkg-deb", "--contents", package).splitlines()]
    assert {row[1] for row in rows} == {"root/root"}, f"{package}: not all is owned by root"
    files = [row[5].split(" -> ")[0] for row in rows if row[0][0] != "d"]
    return fields, files, output("dpkg-deb", "--info", package)


def main():
    cpack, build, work, so, components = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4], sys.argv[5:]
    for tool in ("dpkg-deb", "dpkg-shlibdeps"):
        if shutil.which(tool) is None:
            print(f"SKIPPED: no {tool} here (Debian: apt install dpkg-dev)")
            return 77
    shutil.rmtree(work, ignore_errors=True)
    subprocess.run([cpack, "-G", "DEB", "-B", str(work), "--config", f"{build}/CPackConfig.cmake"], check=True,
                   stdout=subprocess.DEVNULL)
    seen = {}
    found = {path.name.split("_")[0]: path for path in work.glob("*.deb")}
    expected = {FILES[component][0].format(so=so) for component in components}
    assert set(found) == expected, f"packages are {sorted(found)}, expected {sorted(expected)}"
    for component in components:
        name, wanted = FILES[component]
        name = name.format(so=so)
        fields, files, info = read(found[name])
        for file in wanted:
            file = file.format(so=so)
            assert any(path.endswith(file) for path in files), f"{name} lacks {file}: {files}"
        for file in ("copyright", "changelog.Debian.gz"):
            assert f"./usr/share/doc/{name}/{file}" in files, f"{name} lacks its {file}"
        for path in files:
            assert path.startswith("./usr/"), f"{name} has {path}, outside /usr"
            assert path not in seen, f"{path} is in {name} and in {seen[path]}"
            seen[path] = name
        assert fields["Package"] == name and fields["Architecture"] != "all"
        depends = fields.get("Depends", "")
        if component in ("library", "train", "lp"):
            assert "libc6 (>=" in depends and "shlibs" in info and "triggers" in info, f"{name}: {info}"
        if component == "dev":
            exact = f"libhorus{so} (= {fields['Version']})"
            assert depends == exact, f"{name} depends on '{depends}', expected '{exact}'"
            assert "libabsl-dev" in fields["Recommends"], f"{name}: users of the archive link abseil"
    print(f"{len(components)} packages, {len(seen)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
