/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of layout_test.c: the structs of horus/metrics.h. */
/* clang-format off */
    SIZE(horus_metrics_options, 40)
    OFFSET(horus_metrics_options, struct_size, 0)
    OFFSET(horus_metrics_options, log_level, 4)
    OFFSET(horus_metrics_options, log, 8)
    OFFSET(horus_metrics_options, log_user, 16)
    OFFSET(horus_metrics_options, clock, 24)
    OFFSET(horus_metrics_options, clock_user, 32)
    SIZE(horus_metric_columns, 48)
    OFFSET(horus_metric_columns, struct_size, 0)
    OFFSET(horus_metric_columns, reserved, 4)
    OFFSET(horus_metric_columns, capacity, 8)
    OFFSET(horus_metric_columns, names, 16)
    OFFSET(horus_metric_columns, labels, 24)
    OFFSET(horus_metric_columns, kinds, 32)
    OFFSET(horus_metric_columns, values, 40)
/* clang-format on */
