# SPDX-License-Identifier: Apache-2.0
"""What a library offers to compiled programs, read from libabigail's XML, and whether a change of it is a break.

Break: a function, struct or type that is gone or changed, or a field that is not where it was. No break: a new function,
struct or type, new fields behind the old ones (callers say by struct_size which they know), or a meaning for a reserved one.
"""

import re
import xml.etree.ElementTree as ElementTree


class Offer:
    """symbols; functions: name -> signature (not of those that the compiler merged with a twin); structs: name -> [field]; types: name of a typedef -> what it stands for."""

    def __init__(self, text):
        root = ElementTree.fromstring(text)
        self.soname = root.get("soname")
        self._types = {node.get("id"): node for node in root.iter() if node.get("id")}
        self.symbols = {node.get("name"): "symbol" for node in root.iter("elf-symbol")}
        self.functions, self.structs, self.types = {}, {}, {}
        for node in root.iter("function-decl"):
            self.functions[node.get("name")] = self._signature(node)
        for node in root.iter("class-decl"):
            if node.get("is-declaration-only") != "yes" and node.get("name"):
                self.structs[node.get("name")] = [self._field(member) for member in node.iter("data-member")]
        for node in root.iter("typedef-decl"):
            self.types[node.get("name")] = self._name(node.get("type-id"))

    def _field(self, member):
        var = member.find("var-decl")
        return f"{var.get('name')}: {self._name(var.get('type-id'))} at bit {member.get('layout-offset-in-bits')}"

    def _signature(self, node):
        given = ", ".join(self._name(one.get("type-id")) for one in node.findall("parameter"))
        return f"{self._name(node.find('return').get('type-id'))}({given})"

    def _name(self, identity):
        node = self._types[identity]
        inner = node.get("type-id")
        if node.tag == "pointer-type-def":
            return self._name(inner) + "*"
        if node.tag == "qualified-type-def":
            return self._name(inner) + (" const" if node.get("const") == "yes" else " volatile")
        if node.tag == "array-type-def":
            return self._name(inner) + "".join(f"[{one.get('length')}]" for one in node.findall("subrange"))
        if node.tag == "function-type":
            return self._signature(node)
        return node.get("name")


def takes_a_reserved_place(before, after):
    """A reserved field, which programs leave 0, takes on a meaning whose 0 is what they had."""
    old, new = (re.fullmatch(r"(\w+): (u?int(?:32|64)_t) at bit (\d+)", field) for field in (before, after))
    return bool(old and new and old[1].startswith("reserved") and old[1] != new[1]
                and old[2].lstrip("u") == new[2].lstrip("u") and old[3] == new[3])


def changes(old, new):
    """(breaks, additions), each a list of lines."""
    breaks, additions = [], []
    for kind, before, after in [
        ("symbol", old.symbols, new.symbols),
        ("function", old.functions, new.functions),
        ("type", old.types, new.types),
    ]:
        breaks += [f"{kind} {name} is gone" for name in before if name not in after]
        breaks += [
            f"{kind} {name}: expected {before[name]}, found {after[name]}"
            for name in before
            if name in after and before[name] != after[name]
        ]
        additions += [f"{kind} {name}" for name in after if name not in before]
    for name, fields in old.structs.items():
        found = new.structs.get(name)
        if found is None:
            breaks.append(f"struct {name} is gone")
            continue
        for index, field in enumerate(fields):
            if index < len(found) and takes_a_reserved_place(field, found[index]):
                additions.append(f"field {name}.{found[index]}")
            elif index >= len(found) or found[index] != field:
                now = found[index] if index < len(found) else "nothing"
                breaks.append(f"struct {name}: expected {field}, found {now}")
                break
        additions += [f"field {name}.{field}" for field in found[len(fields) :]]
    additions += [f"struct {name}" for name in new.structs if name not in old.structs]
    return breaks, additions
