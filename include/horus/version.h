/* SPDX-License-Identifier: Apache-2.0 */
/* Release and ABI numbers: the one place that states them; CMake reads this file.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_VERSION_H_
#define HORUS_VERSION_H_

/* Release, semantic versioning. */
#define HORUS_VERSION_MAJOR 0
#define HORUS_VERSION_MINOR 2
#define HORUS_VERSION_PATCH 0

/* ABI number. 0 = not frozen yet: then the revision below is raised at each break. */
#define HORUS_ABI 0
#define HORUS_ABI_REVISION 6

/* What horus_abi_check() compares: ABI in the high half, revision in the low half. */
#define HORUS_ABI_NUMBER (HORUS_ABI * 0x10000u + HORUS_ABI_REVISION)

#endif /* HORUS_VERSION_H_ */
