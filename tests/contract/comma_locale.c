/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into the contract's programs: a host may have taken its user's locale, in which numbers have a decimal comma.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void take_locale(void) {
  if (getenv("HORUS_TEST_COMMA") == NULL) return;
  if (setlocale(LC_ALL, "") != NULL && strcmp(localeconv()->decimal_point, ",") == 0) return;
  fprintf(stderr, "no locale with a decimal comma\n");
  abort();
}
