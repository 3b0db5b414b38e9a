/* SPDX-License-Identifier: Apache-2.0 */
/* horus/base.h: names, versions, and the error struct of callers old and new. */
#include "check.h"

static void StatusesHaveNames(void) {
  horus_status status;
  CHECK(strcmp(horus_status_name(HORUS_OK), "OK") == 0);
  CHECK(strcmp(horus_status_name(HORUS_ERR_CONFLICT), "CONFLICT") == 0);
  CHECK(strcmp(horus_status_name(HORUS_ERR_INTERNAL), "INTERNAL") == 0);
  CHECK(strcmp(horus_status_name(HORUS_ERR_INTERNAL + 1), "UNKNOWN") == 0);
  CHECK(strcmp(horus_status_name(-1), "UNKNOWN") == 0);
  for (status = HORUS_OK; status < HORUS_ERR_INTERNAL; ++status) {
    CHECK(strcmp(horus_status_name(status), horus_status_name(status + 1)) != 0);
  }
}

static void VersionsAgreeWithTheHeader(void) {
  horus_library_info info = HORUS_LIBRARY_INFO_INIT;
  char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", HORUS_VERSION_MAJOR, HORUS_VERSION_MINOR, HORUS_VERSION_PATCH);
  CHECK_OK(horus_library_get_info(&info, &error));
  CHECK(strcmp(info.version, text) == 0 && info.abi_number == HORUS_ABI_NUMBER);
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_library_get_info(NULL, &error));
  CHECK_OK(horus_abi_check(HORUS_ABI_NUMBER, &error));
  CHECK_STATUS(HORUS_ERR_VERSION, horus_abi_check(HORUS_ABI_NUMBER + 1, &error));
  CHECK_STATUS(HORUS_ERR_VERSION, horus_abi_check(HORUS_ABI_NUMBER + 0x10000u, &error));
  CHECK(horus_abi_check(0xFFFFFFFFu, NULL) == HORUS_ERR_VERSION); /* a null error is fine */
}

static void ErrorsAreWrittenUpToTheCallersSize(void) {
  horus_error error = HORUS_ERROR_INIT;
  size_t i;
  memset(error.message, 'x', sizeof error.message);
  error.struct_size = 8 + 10; /* an older caller with a message of ten bytes */
  CHECK(horus_abi_check(0, &error) == HORUS_ERR_VERSION);
  CHECK(error.status == HORUS_ERR_VERSION);
  CHECK(strlen(error.message) == 9);
  for (i = 10; i < sizeof error.message; ++i) CHECK(error.message[i] == 'x');

  error.struct_size = 8; /* no room for a message at all */
  error.status = HORUS_OK;
  memset(error.message, 'x', sizeof error.message);
  CHECK(horus_abi_check(0, &error) == HORUS_ERR_VERSION);
  CHECK(error.status == HORUS_ERR_VERSION && error.message[0] == 'x');

  error.struct_size = 0; /* not initialised: nothing is written */
  error.status = HORUS_OK;
  CHECK(horus_abi_check(0, &error) == HORUS_ERR_VERSION);
  CHECK(error.status == HORUS_OK && error.message[0] == 'x');
}

static void SuccessLeavesTheErrorAlone(void) {
  horus_error error = HORUS_ERROR_INIT;
  error.status = HORUS_ERR_BUSY;
  CHECK(horus_abi_check(HORUS_ABI_NUMBER, &error) == HORUS_OK);
  CHECK(error.status == HORUS_ERR_BUSY && error.message[0] == '\0');
}

int main(void) {
  StatusesHaveNames();
  VersionsAgreeWithTheHeader();
  ErrorsAreWrittenUpToTheCallersSize();
  SuccessLeavesTheErrorAlone();
  return report();
}
