/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of layout_test.c: the structs of horus/watch.h. */
/* clang-format off */
    SIZE(horus_watch_options, 40)
    OFFSET(horus_watch_options, struct_size, 0)
    OFFSET(horus_watch_options, log_level, 4)
    OFFSET(horus_watch_options, log, 8)
    OFFSET(horus_watch_options, log_user, 16)
    OFFSET(horus_watch_options, clock, 24)
    OFFSET(horus_watch_options, clock_user, 32)
    SIZE(horus_metrics, 48)
    OFFSET(horus_metrics, struct_size, 0)
    OFFSET(horus_metrics, reserved, 4)
    OFFSET(horus_metrics, capacity, 8)
    OFFSET(horus_metrics, names, 16)
    OFFSET(horus_metrics, labels, 24)
    OFFSET(horus_metrics, kinds, 32)
    OFFSET(horus_metrics, values, 40)
/* clang-format on */
