# SPDX-License-Identifier: Apache-2.0
"""Finds the mutants of a C++ file, and writes the file once with all of them in it, each behind a switch.

Works on text that clang-format has laid out, and so leans on its spaces: a binary operator has them on both sides, the
angle of a template has none before it. Comments, strings, preprocessor lines, template arguments, captures and what is
constexpr are left alone; so is all that is outside of functions.
"""

import dataclasses
import re

TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>R"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<number>(?:0[xX][0-9a-fA-F']+|\.?[0-9](?:[eEpP][+-]|[\w.']|(?<=\d)')*)[uUlLfF]*)|(?P<name>[A-Za-z_]\w*)
    |(?P<sign><<=|>>=|<=>|->\*|\.\.\.|::|\+\+|--|->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""",
    re.X | re.S)

PRECEDENCE = {"*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<": 7, "<=": 7, ">": 7, ">=": 7,
              "==": 6, "!=": 6, "&": 5, "^": 4, "|": 3, "&&": 2, "||": 1}
SWAPPED = {"<": ("<=", ">=", "!="), "<=": ("<", ">", "=="), ">": (">=", "<=", "!="), ">=": (">", "<", "=="),
           "==": ("!=",), "!=": ("==",), "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "%": ("*",),
           "<<": (">>",), ">>": ("<<",), "&": ("|",), "|": ("&",), "&&": ("||",), "||": ("&&",)}
ASSIGNED = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=", "&=": "|="}
ASSIGNMENTS = set(ASSIGNED) | {"=", "%=", "^=", "<<=", ">>="}
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
CONTROL = {"if", "for", "while", "switch"}
# These do not begin a statement that can be left out.
NO_CALL = CONTROL | {"return", "else", "do", "case", "default", "break", "continue", "using", "typedef", "struct", "class",
                     "enum", "const", "constexpr", "static", "auto", "goto", "try", "throw", "template", "static_assert",
                     "HORUS_ASSIGN_OR_RETURN"}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change: `file`'s bytes [start, end) become `text`."""
    file: str
    line: int
    column: int
    start: int
    end: int
    operator: str  # such as "> to >=" or "statement dropped"
    text: str
    source: str  # the line, without its indentation
    ordinal: int  # among those of this file with the same line's text and operator, from 1

    @property
    def place(self):
        return f"{self.file}:{self.line}:{self.column}: {self.operator}"

    @property
    def name(self):
        """Survives edits of other lines."""
        return f"{self.file} | {self.source} | {self.operator} | {self.ordinal}"


@dataclasses.dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int
    spaced: bool  # white space before it
    masked: bool = False
    match: int = -1  # of a bracket, its partner
    block: bool = False  # of a brace: holds statements


def tokens_of(code):
    """Tokens without white space, comments and preprocessor lines; template arguments, captures and constexpr masked."""
    code = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda found: " " * len(found[0]), code, flags=re.M)
    tokens, spaced = [], True
    for found in TOKEN.finditer(code):
        kind = found.lastgroup if found.lastgroup != "raw" else "text"
        if kind in ("space", "comment"):
            spaced = True
            continue
        tokens.append(Token(kind, found[0], found.start(), found.end(), spaced))
        spaced = False
    _mask_templates(tokens)
    _match(tokens)
    _mask_captures(tokens)
    _mask_constexpr(tokens)
    return tokens


def _mask_templates(tokens):
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.text == "<" and at > 0 and (tokens[at - 1].text == "template" or not token.spaced and tokens[at - 1].kind == "name"):
            depth, to = 0, at
            while to < len(tokens):
                depth += {"<": 1, ">": -1, ">>": -2}.get(tokens[to].text, 0)
                tokens[to].masked = True
                if depth <= 0:
                    break
                to += 1
            at = to
        at += 1


def _match(tokens):
    stack = []
    for at, token in enumerate(tokens):
        if token.masked:
            continue
        if token.text in OPEN:
            if token.text == "{":
                before = tokens[at - 1] if at else None
                init = before is not None and (
                    before.text in {"=", "(", ",", "return", ":", "?"} or
                    not token.spaced and (before.kind == "name" or before.masked or before.text in {"]", "[", "{"}) or
                    before.text == "{" and not before.block)
                token.block = not init
            stack.append(at)
        elif token.text in CLOSE and stack:
            token.match = stack.pop()
            tokens[token.match].match = at
            token.block = tokens[token.match].block


def _mask_captures(tokens):
    for at, token in enumerate(tokens):
        if token.text != "[" or token.masked or token.match < 0:
            continue
        before = tokens[at - 1]
        if before.kind in {"name", "text"} and before.text != "return" or before.text in {")", "]"} or before.masked:
            continue
        for inner in tokens[at + 1:token.match]:
            inner.masked = True


def _mask_constexpr(tokens):
    for at, token in enumerate(tokens):
        if token.text not in {"constexpr", "static_assert", "case"}:
            continue
        for to in range(at, len(tokens)):
            if tokens[to].text in {";", "{"} and not (tokens[to].text == "{" and not tokens[to].block):
                break
            if token.text == "case" and tokens[to].text == ":":
                break
            tokens[to].masked = True


def _functions(tokens):
    """(first, last, answers bool) of the tokens of each function's body."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.text == "{" and token.block and not token.masked:
            head = at - 1
            while head >= 0 and tokens[head].text not in {";", "{", "}"}:
                head -= 1
            words = [one.text for one in tokens[head + 1:at]]
            if "(" in words and not {"namespace", "struct", "class", "enum", "union"} & set(words):
                yield at, token.match, "bool" in words[:words.index("(")]
                at = token.match
        at += 1


class _File:
    def __init__(self, name, code):
        self.name, self.code, self.tokens = name, code, tokens_of(code)
        self.found = []  # (start, end, operator, text, line of which token)

    def raw(self, first, last):
        return self.code[self.tokens[first].start:self.tokens[last].end]

    def add(self, first, last, operator, text, at):
        self.found.append((self.tokens[first].start, self.tokens[last].end, operator, text, self.tokens[at].start))

    def binary(self, at):
        token, after = self.tokens[at], self.tokens[at + 1]
        before = self.tokens[at - 1]
        return (token.kind == "sign" and token.text in PRECEDENCE and not token.masked and token.spaced and after.spaced and
                before.text != "operator")

    def edge(self, at, precedence, step):
        """The first or last token of the operand beside `at`."""
        side = at + step
        while True:
            token = self.tokens[side]
            if token.text in ("=", "?", ":", ";", ",") and not token.masked or token.text in ASSIGNMENTS and not token.masked:
                break
            if token.kind == "name" and token.text in {"return", "else", "do", "case"}:
                break
            if not token.masked and token.text in OPEN.keys() | CLOSE:
                enters = token.text in (CLOSE if step < 0 else OPEN)
                if not enters or token.match < 0:
                    break
                if token.text in "{}" and token.block and (step < 0 or not self._lambda(side)):
                    break
                if step < 0 and token.text == ")" and self.tokens[token.match - 1].text in CONTROL:
                    break
                side = token.match
            elif self.binary(side) and (PRECEDENCE[token.text] < precedence or
                                        step > 0 and PRECEDENCE[token.text] == precedence):
                break
            side += step
        return side - step

    def _lambda(self, brace):
        before = self.tokens[brace - 1]
        return before.text in {")", "]", "mutable"} or before.kind == "name"

    def operators(self, first, last):
        for at in range(first + 1, last):
            token = self.tokens[at]
            if self.binary(at):
                left, right = self.edge(at, PRECEDENCE[token.text], -1), self.edge(at, PRECEDENCE[token.text], 1)
                if left >= at or right <= at:
                    continue
                for other in SWAPPED[token.text]:
                    if other in {"!=", "=="} and token.text not in {"!=", "=="} and self._in_for(at):
                        continue  # the loop counts by one
                    text = (self.code[self.tokens[left].start:token.start] + other +
                            self.code[token.end:self.tokens[right].end])
                    self.add(left, right, f"{token.text} to {other}", text, at)
            elif token.kind == "number" and token.text in {"0", "1"} and not token.masked:
                other = "1" if token.text == "0" else "0"
                self.add(at, at, f"{token.text} to {other}", other, at)
            elif token.kind == "name" and token.text in {"true", "false"} and not token.masked:
                other = "false" if token.text == "true" else "true"
                self.add(at, at, f"{token.text} to {other}", other, at)
            elif token.text == "!" and not token.masked:
                end = self._operand(at + 1)
                self.add(at, end, "! dropped", "(" + self.raw(at + 1, end) + ")", at)
            elif token.text in {"min", "max"} and self.raw(at - 2, at - 1) == "std::" and not token.masked:
                opening = at + 1
                while self.tokens[opening].masked:
                    opening += 1
                if self.tokens[opening].text == "(" and self.tokens[opening].match > 0:
                    other = "max" if token.text == "min" else "min"
                    self.add(at - 2, self.tokens[opening].match, f"std::{token.text} to std::{other}",
                             "std::" + other + self.code[token.end:self.tokens[self.tokens[opening].match].end], at)
            elif token.text == "?" and not token.masked:
                left = self.edge(at, 0, -1)
                self._negated(left, at - 1, at)

    def _in_for(self, at):
        depth = at
        while depth >= 0:
            token = self.tokens[depth]
            if token.text == ")" and token.match >= 0:
                depth = token.match
            elif token.text == "(":
                return self.tokens[depth - 1].text == "for"
            elif token.text in "{}":
                return False
            depth -= 1
        return False

    def _operand(self, at):
        """The last token of the unary expression that begins at `at`."""
        while self.tokens[at].text in {"!", "*", "-", "~", "&"}:
            at += 1
        if self.tokens[at].text in OPEN:
            at = self.tokens[at].match
        while True:
            after = self.tokens[at + 1]
            if after.masked:
                at += 1
            elif after.text in {".", "->", "::"}:
                at += 2
            elif after.text in {"(", "["} and not after.spaced:
                at = after.match
            else:
                return at

    def _comparison(self, first, last):
        """Whether the condition is one comparison: then its own mutants negate it."""
        at = first
        signs = []
        while at <= last:
            token = self.tokens[at]
            if not token.masked and token.text in OPEN and token.match > 0:
                at = token.match
            elif self.binary(at) and PRECEDENCE[token.text] <= 7:
                signs.append(token.text)
            at += 1
        return len(signs) == 1 and PRECEDENCE[signs[0]] in (6, 7)

    def _negated(self, first, last, at):
        raw = self.raw(first, last)
        if first == last and self.tokens[first].text in {"true", "false"} or self._comparison(first, last):
            return
        if self.tokens[first].text == "!" and self._operand(first + 1) == last:
            return  # "! dropped" is it
        self.add(first, last, "condition negated", f"!({raw})", at)

    def statements(self, first, last, answers_bool):
        for at in range(first + 1, last):
            token, before = self.tokens[at], self.tokens[at - 1]
            if token.masked or before.masked:
                continue
            starts = (before.text == ";" or before.text in "{}" and before.block or before.text in {"else", "do"} or
                      before.text == ")" and before.match > 0 and self.tokens[before.match - 1].text in CONTROL)
            if not starts or self._in_parens(at) or before.text == "}" and self._type(before.match):
                continue
            if token.text in {"if", "while"} and self.tokens[at + 1].text == "(":
                self._condition(at)
            elif token.text == "return" and answers_bool:
                end = self._end(at)
                if end - 1 > at:
                    self._negated(at + 1, end - 1, at)
            elif token.text not in NO_CALL and (token.kind == "name" or token.text in {"++", "--", "*", "("}):
                self._statement(at)

    def _type(self, brace):
        """Whether the brace opens a struct."""
        head = brace - 1
        while self.tokens[head].text not in {";", "{", "}", "(", ")"}:
            if self.tokens[head].text in {"struct", "class", "union", "enum"}:
                return True
            head -= 1
        return False

    def _in_parens(self, at):
        """Inside the header of a for loop, where `;` ends no statement."""
        while at >= 0:
            at -= 1
            token = self.tokens[at]
            if token.masked:
                continue
            if token.text in CLOSE and token.match >= 0:
                at = token.match
            elif token.text == "(":
                return True
            elif token.text == "{":
                return False
        return False

    def _end(self, at):
        while self.tokens[at].text != ";":
            if self.tokens[at].text in OPEN and not self.tokens[at].masked:
                at = self.tokens[at].match
            at += 1
        return at

    def _condition(self, at):
        opening = at + 1
        closing = self.tokens[opening].match
        first = opening + 1
        for to in range(opening + 1, closing):
            if self.tokens[to].text == ";" and not self._within(opening, to):
                first = to + 1
        if any(self.tokens[to].text == "=" and not self._within(opening, to) for to in range(first, closing)):
            return  # declares
        self._negated(first, closing - 1, at)
        if self.tokens[at].text == "if":
            self.add(first, closing - 1, "condition false", "false", at)

    def _within(self, opening, to):
        """Whether a bracket inside of the one at `opening` holds `to`."""
        at = opening + 1
        while at < to:
            if self.tokens[at].text in OPEN and not self.tokens[at].masked and self.tokens[at].match > to:
                return True
            at += 1
        return False

    def _statement(self, at):
        end = self._end(at)
        if self._declares(at, end):
            return
        self.add(at, end, "statement dropped", ";", at)
        for to in range(at, end):
            token = self.tokens[to]
            if token.text in ASSIGNED and not token.masked and not self._within(at - 1, to):
                text = self.code[self.tokens[at].start:token.start] + ASSIGNED[token.text] + self.code[token.end:self.tokens[end].end]
                self.add(at, end, f"{token.text} to {ASSIGNED[token.text]}", text, to)
        if self.tokens[at].text in {"++", "--"}:
            other = "--" if self.tokens[at].text == "++" else "++"
            self.add(at, end, f"{self.tokens[at].text} to {other}", other + self.raw(at + 1, end), at)

    def _declares(self, at, end):
        """A type and then a name: `Type name`, `Type& name`, `Type<..> name`."""
        to = at
        while to < end and (self.tokens[to].kind == "name" or self.tokens[to].text == "::" or self.tokens[to].masked):
            if to > at and self.tokens[to].kind == "name" and not self.tokens[to].masked and \
                    (self.tokens[to - 1].kind == "name" or self.tokens[to - 1].masked):
                return True
            to += 1
        if self.tokens[to].text in {"&", "*"} and not self.tokens[to].spaced and self.tokens[to + 1].kind == "name":
            return True
        return self.tokens[at].kind == "name" and to == at and self.tokens[at + 1].text == "{"


def mutants_of(name, code):
    """All mutants of the file, in the order of their places."""
    file = _File(name, code)
    for first, last, answers_bool in _functions(file.tokens):
        file.operators(first, last)
        file.statements(first, last, answers_bool)
    mutants, seen = [], {}
    for start, end, operator, text, at in sorted(set(file.found), key=lambda one: (one[4], one[0], one[2])):
        line = code.count("\n", 0, at) + 1
        begin = code.rfind("\n", 0, at) + 1
        source = code[begin:code.find("\n", at)].strip()
        seen[source, operator] = seen.get((source, operator), 0) + 1
        mutants.append(Mutant(name, line, at - begin + 1, start, end, operator, text, source, seen[source, operator]))
    return mutants


def apply(code, mutant):
    """The file with this one mutant."""
    return code[:mutant.start] + mutant.text + code[mutant.end:]


def switched(code, numbered):
    """The file with all mutants: `numbered` holds (number, mutant). Leaves the text and, for each number, where in it
    the mutant stands."""
    sites = {}
    for number, mutant in numbered:
        sites.setdefault((mutant.start, -mutant.end), []).append((number, mutant))
    keys = sorted(sites)
    out, spans, length = [], {}, 0

    def put(text):
        nonlocal length
        out.append(text)
        length += len(text)

    def render(start, end, inner):
        """The text from `start` to `end` with the sites `inner` that lie in it."""
        at = 0
        while at < len(inner):
            begin, finish = inner[at][0], -inner[at][1]
            nested = at + 1
            while nested < len(inner) and inner[nested][0] < finish:
                if -inner[nested][1] > finish:
                    raise ValueError(f"sites overlap at {code[begin:-inner[nested][1]]!r}")
                nested += 1
            put(code[start:begin])
            site(inner[at], inner[at + 1:nested])
            start, at = finish, nested
        put(code[start:end])

    def site(key, inner):
        begin, finish = key[0], -key[1]
        whole = code[finish - 1] == ";"
        put("{ " if whole else "(")
        for number, mutant in sites[key]:
            put(f"if (HM({number})) {{ " if whole else f"HM({number}) ? ")
            spans[number] = (length, length + len(mutant.text))
            put(mutant.text)
            put(" } else " if whole else " : ")
        put("{ " if whole else "(")
        render(begin, finish, inner)
        put(" } }" if whole else "))")

    render(0, len(code), keys)
    return "".join(out), spans
