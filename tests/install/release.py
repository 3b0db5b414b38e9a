# SPDX-License-Identifier: Apache-2.0
"""Makes a draft release twice, reads, signs, checks and spoils it. Ends with 77 where a release cannot be made: no checkout, a package not there.

Usage: release.py SOURCE WORK"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile


def checked(source, folder):
    """What `scripts/release --check` says of a release, and whether it holds."""
    done = subprocess.run([sys.executable, source / "scripts/release", "--check", folder], capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout + done.stderr


def sign_and_spoil(source, out):
    holds, said = checked(source, out)
    assert holds and "nobody signed" in said, said
    with tempfile.TemporaryDirectory() as home:  # short: gpg's sockets lie in it
        os.environ["GNUPGHOME"] = home
        key = ["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-gen-key", "releaser@example.org", "ed25519", "sign", "1d"]
        subprocess.run(key, check=True)
        subprocess.run([sys.executable, source / "scripts/release", "--draft", "--out", out, "--sign", "releaser@example.org"],
                       check=True, capture_output=True)
        holds, said = checked(source, out)
        assert holds and "which is signed" in said, said
        signature = out / "SHA256SUMS.asc"
        sums = (out / "SHA256SUMS").read_text(encoding="utf-8")
        (out / "CHANGES").write_text("Others.\n", encoding="utf-8")
        told = hashlib.sha256(b"Others.\n").hexdigest()
        (out / "SHA256SUMS").write_text(re.sub(r"^\w+(?=  CHANGES$)", told, sums, flags=re.M), encoding="utf-8")
        holds, said = checked(source, out)
        assert not holds and "provenance" in said, f"a file and its checksum were replaced: {said}"
        statement = next(out.glob("*.provenance.json"))
        old = hashlib.sha256(statement.read_bytes()).hexdigest()
        before = re.search(r"^(\w+)  CHANGES$", sums, re.M)[1]
        statement.write_text(statement.read_text(encoding="utf-8").replace(before, told), encoding="utf-8")
        sums = (out / "SHA256SUMS").read_text(encoding="utf-8")
        (out / "SHA256SUMS").write_text(sums.replace(old, hashlib.sha256(statement.read_bytes()).hexdigest()), encoding="utf-8")
        holds, said = checked(source, out)
        assert not holds and "signature" in said, f"and its provenance: {said}"
        subprocess.run(["gpgconf", "--kill", "gpg-agent"], check=False)
        signature.unlink()
    (out / "more").write_text("", encoding="utf-8")
    holds, said = checked(source, out)
    assert not holds and "more" in said, f"a file was added: {said}"


def main():
    source, work = map(pathlib.Path, sys.argv[1:3])
    if not (source / ".git").exists():
        print("SKIPPED: the source is no checkout of git")
        return 77
    outs = [work / "first", work / "second"]
    for out in outs:
        done = subprocess.run([sys.executable, source / "scripts/release", "--draft", "--out", out], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0 and "whose copyright file is quoted" in done.stderr:
            print(f"SKIPPED: {done.stderr.strip()}")
            return 77
        assert done.returncode == 0, done.stderr
    first, second = ({path.name: path.read_bytes() for path in out.iterdir()} for out in outs)
    assert first == second, "the same commit gave other bytes"

    listed = dict(reversed(line.split("  ")) for line in first["SHA256SUMS"].decode().splitlines())
    assert listed == {name: hashlib.sha256(data).hexdigest() for name, data in first.items() if name != "SHA256SUMS"}

    archive = next(name for name in first if name.endswith(".tar.gz"))
    prefix = archive.removesuffix(".tar.gz")
    with tarfile.open(outs[0] / archive) as tar:
        held = {name.removeprefix(prefix + "/") for name in tar.getnames() if not tar.getmember(name).isdir()}
    document = json.loads(first[prefix + ".spdx.json"])
    described = {file["fileName"].removeprefix("./") for file in document["files"]}
    assert held == described | {"THIRD_PARTY_NOTICES", prefix + ".spdx.json"}, held ^ described
    assert {"CMakeLists.txt", "include/horus/horus.h", "LICENSE"} <= held

    # What SPDX 2.3 demands of identifiers, and that every relationship is between elements that are there.
    elements = [document, *document["packages"], *document["files"]]
    known = {element["SPDXID"] for element in elements}
    assert len(known) == len(elements) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name) for name in known)
    for relation in document["relationships"]:
        assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= known, relation
    own = document["packages"][0]
    hashes = sorted(file["checksums"][0]["checksumValue"] for file in document["files"])
    code = hashlib.sha1("".join(hashes).encode()).hexdigest()
    assert own["packageVerificationCode"]["packageVerificationCodeValue"] == code

    notices = first["THIRD_PARTY_NOTICES"].decode()
    for package in document["packages"][1:]:
        assert f"- {package['name']}: {package['licenseDeclared']};" in notices, package["name"]
    assert first["CHANGES"].strip(), "CHANGELOG.md says nothing of this version"
    statement = json.loads(first[prefix + ".provenance.json"])
    assert {one["name"] for one in statement["subject"]} == first.keys() - {"SHA256SUMS", prefix + ".provenance.json"}
    commit = statement["predicate"]["buildDefinition"]["resolvedDependencies"][0]["digest"]["gitCommit"]
    assert re.fullmatch("[0-9a-f]{40}", commit), commit

    sign_and_spoil(source, outs[1])
    print(f"{len(held)} files, {len(document['packages'])} SPDX packages, {len(notices) // 1024} KiB of notices")
    return 0


if __name__ == "__main__":
    sys.exit(main())
