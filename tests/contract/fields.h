/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a struct, spoiled one after another in a call that takes it: each is refused by name, and nothing else
 * changes. */
#ifndef HORUS_TESTS_CONTRACT_FIELDS_H_
#define HORUS_TESTS_CONTRACT_FIELDS_H_

#include <stddef.h>

#include "check.h"

/* Calls with `given`; must leave what it would make as it was unless it answers OK, which it then lets go. */
typedef horus_status (*taker)(const void* given, horus_error* error);

enum field_kind {
  FIELD_COLUMN, /* of numbers or structs, which must be there */
  FIELD_TEXTS,  /* a column of texts, which must be there and each be UTF-8 */
  FIELD_WHOLE,  /* a column of texts that may be left out as a whole; each must be there and UTF-8 */
  FIELD_NAMES,  /* likewise, but single texts may be left out too */
  FIELD_TEXT    /* one text that may be left out */
};

typedef struct field {
  const char* name; /* what a message calls it */
  size_t offset;
  enum field_kind kind;
} field;
#define FIELD(type, kind, member) {#member, offsetof(type, member), kind}

#define MOST_TEXTS 40 /* elements of a column of texts in these tests, at most */

static inline void check_refused(taker take, const void* given, const char* name, const char* found) {
  horus_error error = HORUS_ERROR_INIT;
  const horus_status status = take(given, &error);
  const char* at = strstr(error.message, name);
  if (status == HORUS_ERR_INVALID_ARGUMENT && at != NULL && strstr(at, found) != NULL) return;
  fprintf(stderr, "%s: expected INVALID_ARGUMENT with '%s', found %s: %s\n", name, found, horus_status_name(status),
          error.message);
  ++failures;
}

/* The first of `count` texts is spoiled; `given` comes back as it was. */
static inline void check_texts(taker take, void* given, const field* at, size_t count) {
  const char* texts[MOST_TEXTS];
  const char* const* spoiled = texts;
  const char* const* column;
  CHECK(count > 0 && count <= MOST_TEXTS);
  memcpy(&column, (const char*)given + at->offset, sizeof column);
  if (column != NULL) memcpy(texts, column, count * sizeof *texts);
  memcpy((char*)given + at->offset, &spoiled, sizeof spoiled);
  texts[0] = "a\xff";
  check_refused(take, given, at->name, "expected UTF-8, found byte 0xff at offset 1");
  if (at->kind != FIELD_NAMES) {
    texts[0] = NULL;
    check_refused(take, given, at->name, "found NULL");
  }
  memcpy((char*)given + at->offset, &column, sizeof column);
}

/* `given` is accepted, and refused with any of the fields spoiled; columns of texts have `texts` elements. */
static inline void check_fields(taker take, void* given, const field* fields, size_t count, size_t texts) {
  static const void* const none = NULL;
  static const char* const spoiled = "b\xc3";
  const void* kept;
  size_t i;
  CHECK_OK(take(given, &error));
  for (i = 0; i < count; ++i) {
    char* at = (char*)given + fields[i].offset;
    memcpy(&kept, at, sizeof kept);
    if (fields[i].kind == FIELD_COLUMN || fields[i].kind == FIELD_TEXTS) {
      memcpy(at, &none, sizeof none);
      check_refused(take, given, fields[i].name, "found NULL");
      memcpy(at, &kept, sizeof kept);
    }
    if (fields[i].kind == FIELD_TEXT) {
      memcpy(at, &spoiled, sizeof spoiled);
      check_refused(take, given, fields[i].name, "expected UTF-8, found byte 0xc3 at offset 1");
      memcpy(at, &kept, sizeof kept);
    } else if (fields[i].kind != FIELD_COLUMN) {
      check_texts(take, given, &fields[i], texts);
    }
  }
  CHECK_OK(take(given, &error)); /* nothing stuck */
}
#define CHECK_FIELDS(take, given, fields, texts) \
  check_fields(take, given, fields, sizeof(fields) / sizeof *(fields), texts)

/* A struct of `size` bytes that is accepted, and not with a size that none ever had, or a reserved field that is set.
 */
static inline void check_struct(taker take, void* given, const char* name, size_t size, size_t reserved) {
  const uint32_t good = (uint32_t)size, sizes[2] = {0, 4};
  const int32_t set = 1, none = 0;
  size_t i;
  CHECK_OK(take(given, &error));
  for (i = 0; i < 2; ++i) {
    memcpy(given, &sizes[i], sizeof sizes[i]);
    CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, name, take(given, &error));
  }
  memcpy(given, &good, sizeof good);
  if (reserved == SIZE_MAX) return;
  memcpy((char*)given + reserved, &set, sizeof set);
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, name, take(given, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "reserved: expected 0, found 1", take(given, &error));
  memcpy((char*)given + reserved, &none, sizeof none);
  CHECK_OK(take(given, &error)); /* nothing stuck */
}
#define CHECK_STRUCT(take, given, type) check_struct(take, given, #type, sizeof(type), offsetof(type, reserved))
/* Of a struct that has no reserved field. */
#define CHECK_STRUCT_SIZE(take, given, type) check_struct(take, given, #type, sizeof(type), SIZE_MAX)

#endif /* HORUS_TESTS_CONTRACT_FIELDS_H_ */
