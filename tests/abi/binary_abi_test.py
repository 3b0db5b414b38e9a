# SPDX-License-Identifier: Apache-2.0
"""What counts as a break of the binary interface, on an offer made up for it."""

import unittest

import binary_abi
import check_history

TEXT = """<abi-corpus architecture='elf-amd-x86_64' soname='libhorus.so.0.1'>
<elf-function-symbols><elf-symbol name='horus_get'/><elf-symbol name='horus_twin'/></elf-function-symbols>
<abi-instr address-size='64' path='src/capi/get.cc'>
<type-decl name='int' size-in-bits='32' id='i'/><type-decl name='long' size-in-bits='64' id='l'/>
<type-decl name='char' size-in-bits='8' id='c'/><type-decl name='void' id='v'/>
<subrange length='8' type-id='l' id='r'/>
<array-type-def dimensions='1' type-id='c' id='a'><subrange length='8' type-id='l' id='r8'/></array-type-def>
<class-decl name='horus_row' size-in-bits='128' is-struct='yes' id='s'>
<data-member layout-offset-in-bits='0'><var-decl name='size' type-id='i'/></data-member>
<data-member layout-offset-in-bits='32'><var-decl name='text' type-id='a'/></data-member>
</class-decl>
<class-decl name='horus_handle' is-struct='yes' is-declaration-only='yes' id='h'/>
<qualified-type-def type-id='s' const='yes' id='cs'/><pointer-type-def type-id='cs' id='pcs'/>
<pointer-type-def type-id='v' id='pv'/>
<function-type id='f'><parameter type-id='pv'/><return type-id='i'/></function-type>
<pointer-type-def type-id='f' id='pf'/><typedef-decl name='horus_callback' type-id='pf' id='t'/>
<function-decl name='horus_get'><parameter type-id='pcs'/><parameter type-id='t'/><return type-id='i'/></function-decl>
</abi-instr></abi-corpus>"""

FIELD = "<data-member layout-offset-in-bits='96'><var-decl name='more' type-id='i'/></data-member>\n</class-decl>"


def changed(old, new, text=TEXT):
    if old not in text:
        raise ValueError(f"not in the offer: {old}")
    return binary_abi.changes(binary_abi.Offer(text), binary_abi.Offer(text.replace(old, new, 1)))


class Breaks(unittest.TestCase):
    def test_reads_names_as_c_writes_them(self):
        offer = binary_abi.Offer(TEXT)
        self.assertEqual(offer.functions, {"horus_get": "int(horus_row const*, horus_callback)"})
        self.assertEqual(offer.structs, {"horus_row": ["size: int at bit 0", "text: char[8] at bit 32"]})
        self.assertEqual(offer.types, {"horus_callback": "int(void*)*"})

    def test_nothing_changed_is_nothing(self):
        self.assertEqual(changed("soname='libhorus.so.0.1'", "soname='libhorus.so.0.1'"), ([], []))

    def test_a_field_behind_the_others_is_no_break(self):
        self.assertEqual(changed("</class-decl>", FIELD), ([], ["field horus_row.more: int at bit 96"]))

    def test_a_reserved_field_may_take_on_a_meaning_of_its_size(self):
        self.assertTrue(binary_abi.takes_a_reserved_place("reserved: uint32_t at bit 96", "layout: int32_t at bit 96"))
        for now in ("layout: int64_t at bit 96", "layout: int32_t at bit 64", "layout: char[4] at bit 96"):
            self.assertFalse(binary_abi.takes_a_reserved_place("reserved: uint32_t at bit 96", now))
        self.assertFalse(binary_abi.takes_a_reserved_place("size: uint32_t at bit 96", "layout: int32_t at bit 96"))
        self.assertFalse(binary_abi.takes_a_reserved_place("reserved: uint32_t at bit 96", "reserved: uint32_t at bit 96"))

    def test_each_of_these_is_a_break(self):
        for old, new in [
            ("<elf-symbol name='horus_twin'/>", ""),
            ("<function-decl name='horus_get'", "<function-decl name='horus_got'"),
            ("<parameter type-id='t'/><return", "<return"),
            ("<parameter type-id='pcs'/>", "<parameter type-id='pv'/>"),
            ("<parameter type-id='pv'/><return type-id='i'/>", "<return type-id='i'/>"),
            ("<return type-id='i'/></function-decl>", "<return type-id='l'/></function-decl>"),
            ("name='size' type-id='i'", "name='size' type-id='l'"),
            ("name='size'", "name='bytes'"),
            ("layout-offset-in-bits='32'", "layout-offset-in-bits='64'"),
            ("length='8' type-id='l' id='r8'", "length='16' type-id='l' id='r8'"),
            ("name='horus_row'", "name='horus_line'"),
        ]:
            with self.subTest(change=f"{old} -> {new}"):
                self.assertNotEqual(changed(old, new)[0], [])

    def test_a_field_before_another_is_a_break(self):
        with_field = TEXT.replace("</class-decl>", FIELD, 1)
        self.assertNotEqual(changed(FIELD, "</class-decl>", with_field)[0], [])

    def test_a_commit_may_break_only_with_a_new_revision(self):
        broken, raised = TEXT.replace("name='size'", "name='bytes'"), ("libhorus.so.0.1", "libhorus.so.0.2")
        self.assertIn("bytes", check_history.fault(TEXT, broken))
        self.assertIsNone(check_history.fault(TEXT, broken.replace(*raised)))
        self.assertIsNone(check_history.fault(TEXT, TEXT.replace("</class-decl>", FIELD, 1)))


if __name__ == "__main__":
    unittest.main()
