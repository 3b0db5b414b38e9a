// SPDX-License-Identifier: Apache-2.0
// horus_feature_docs: prints the part of src/features/FEATURES.md that is made from the schema.
#include <cstdio>

#include "features/feature_row.h"

int main() { return std::fputs(horus::FeatureSchemaMarkdown().c_str(), stdout) < 0 ? 1 : 0; }
