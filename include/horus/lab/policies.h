/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the policies that libhorus_lab adds to those of libhorus.
 * Since 0.2 where nothing else is said. */
#ifndef HORUS_LAB_POLICIES_H_
#define HORUS_LAB_POLICIES_H_

#include "horus/place.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct horus_lab_policy_options {
  uint32_t struct_size;
  int32_t synergy_grow;        /* "synergy-tune": 1 = hand out what is left, residents included */
  double synergy_tolerance;    /* "synergy-*": a speed this much below the best counts as the best, 0 to below 1;
                                  0 = 0.03, -1 = none */
  double pack_threshold;       /* "gavel-threshold": least summed throughput of a pack; 0 = 1.5 */
  double foreground_bound;     /* "foreground": slowdown of a foreground job that states none, >= 1; 0 = 1.1 */
  const char* profiling_label; /* "reactive": nodes with this label only profile; NULL = "horus-profiling" */
} horus_lab_policy_options;
#define HORUS_LAB_POLICY_OPTIONS_INIT HORUS_INIT(horus_lab_policy_options)

/* As horus_placer_create; `lab` may be NULL. Policies that an option does not name do not read it. */
HORUS_API horus_status horus_lab_placer_create(const horus_placer_options* options, const horus_lab_policy_options* lab,
                                               horus_placer** out, horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_LAB_POLICIES_H_ */
