# SPDX-License-Identifier: Apache-2.0
"""Checks that readers of what strangers wrote multiply and shift integers only where that cannot overflow.

Usage: check_sizes.py REPOSITORY
In the files that read graphs, bundles, snapshots, people's files and the arrays of C callers, an integer product or
shift to the left must be checked (CheckedMul, CheckedProduct, __builtin_mul_overflow) or say why it cannot overflow:
"// Bounded: <why>" on its line or above its statement, or "// Bounded throughout: <why>" for a whole file. So must a sum
that a comparison takes as its limit. What needs no words: floating point, 128 bits (Wide), constants among themselves,
shifts by a constant, and sizeof times what a container in memory holds.
"""

import pathlib
import re
import sys

READERS = [
    "base/bytes.h", "capi/*", "device/catalogue.cc", "device/gpu_fields.cc", "graph/*",
    "interference/*bundle.cc", "interference/kernel_bundle.cc", "interference/observed_s*.cc",
    "interference/pair_model.cc", "io/*", "io/kube/*", "lab/capi/*", "lab/io/*", "lab/io/traces/*", "lab/trace/*", "place/job/job.cc",
    "place/state/snapshot*", "predict/demand.cc", "trees/bundle*.cc", "trees/trainer.cc",
]
SOURCES = (".cc", ".h")
OPERAND = r"(?:[\w:.>\-]|\(\)|\[[^\[\]]*\]|\([^()]*\))+"
PRODUCT = re.compile(rf"({OPERAND}) (\*|<<|\*=|<<=) ({OPERAND}|[*&(])")
BITS_OF_BYTE = re.compile(r"(?:<<|>>) \(8 \* i\)")  # i counts the bytes of one number
REAL_NAME = re.compile(r"\b(?:double|float) (\w+)")
SUM_LIMIT = re.compile(rf"{OPERAND} \+ {OPERAND} (?:>|>=) |(?: <| <=) {OPERAND} \+ {OPERAND}")
FLOATING = re.compile(r"\b(?:double|float|Wide|std::(?:floor|round|llround|abs|fmod|exp|sqrt|log))\b|\d\.\d|\d[eE]-?\d")
CONSTANT = re.compile(r"^(?:\(?(?:\d[\d']*u?l*|k[A-Z]\w*|sizeof\b.*|\w+::k[A-Z]\w*|u?int\d+_t\{\d+\}|size_t\{\d+\}|1u)\)?)$")
CHECKED = re.compile(r"Checked(?:Add|Mul|Product)|__builtin_(?:add|mul|sub)_overflow|\bstatic_assert\b")
IN_MEMORY = re.compile(r"(?:size|capacity)\(\)\)? \* sizeof|\b[2-8] \* [\w.>-]*\.size\(\)")
BOUNDED = re.compile(r"// Bounded: \S")
BOUNDED_FILE = re.compile(r"^// Bounded throughout: \S", re.MULTILINE)


def bare(line):
    return re.sub(r"//.*", "", re.sub(r'"(?:\\.|[^"\\])*"', '""', line))


def risky(code, reals):
    """The first product or limit of the line that needs a proof; `reals`: names of the file's floating-point values."""
    if CHECKED.search(code) or FLOATING.search(code) or IN_MEMORY.search(code) or BITS_OF_BYTE.search(code):
        return None
    for match in PRODUCT.finditer(code):
        left, sign, right = match[1], match[2], match[3]
        constant = CONSTANT.match(right) and (CONSTANT.match(left) or sign.startswith("<<"))
        if not constant and not reals & set(re.findall(r"\w+", left + " " + right)):
            return match[0]
    limit = SUM_LIMIT.search(code)
    return limit[0] if limit else None


def said(lines, at):
    """Whether the statement of line `at` says why: behind it on the line, or right above the statement."""
    if BOUNDED.search(lines[at]):
        return True
    while at > 0 and not re.search(r"[;{}:]\s*$", bare(lines[at - 1]).rstrip()) and bare(lines[at - 1]).strip():
        at -= 1
    return at > 0 and lines[at - 1].lstrip().startswith("// Bounded: ")


def unproven(text):
    """(line number, expression) of what is neither checked nor said to be bounded."""
    if BOUNDED_FILE.search(text):
        return []
    lines = text.splitlines()
    reals = set(REAL_NAME.findall(text))
    found = []
    for at, line in enumerate(lines):
        expression = None if line.lstrip().startswith(("//", "/*", "*")) else risky(bare(line), reals)
        if expression and not said(lines, at):
            found.append((at + 1, expression.strip()))
    return found


def main():
    root = pathlib.Path(sys.argv[1])
    files = sorted({path for one in READERS for path in (root / "src").glob(one) if path.suffix in SOURCES})
    problems = 0
    for one in READERS:
        if not any((root / "src").glob(one)):
            print(f"src/{one}: expected a file to look at, found none")
            problems += 1
    for path in files:
        for line, expression in unproven(path.read_text(encoding="utf-8")):
            print(f"{path.relative_to(root)}:{line}: '{expression}': check it, or say '// Bounded: ...'")
            problems += 1
    print(f"sizes: {len(files)} files, {problems} products or limits unproven")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
