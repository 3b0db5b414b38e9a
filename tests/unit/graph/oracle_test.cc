// SPDX-License-Identifier: Apache-2.0
// Oracle: every shape that ONNX's own inference resolves, ours resolves to the same sizes.
#include <dirent.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "graph/reader.h"
#include "graph/shaped.h"

namespace horus {
namespace {

constexpr int64_t kBatch = 2;
// Sizes tried for every other named dimension; audio nets need the long one.
constexpr int64_t kLengths[] = {64, 16'000};

std::vector<std::string> OnnxFilesIn(const std::string& folder) {
  std::vector<std::string> files;
  if (DIR* dir = opendir(folder.c_str())) {
    while (const dirent* entry = readdir(dir)) {
      const std::string name = entry->d_name;
      if (name.size() > 5 && name.substr(name.size() - 5) == ".onnx") files.push_back(folder + "/" + name);
    }
    closedir(dir);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

// Writes the sizes that ours binds into the inputs of the other's graph, and drops what the file declares.
void BindInputs(const ShapedGraph& ours, onnx::ModelProto* model) {
  std::map<std::string, const Tensor*> inputs;
  for (const ShapedInput& input : ours.inputs) {
    const Tensor& tensor = ours.tensors[input.tensor.value()];
    inputs[tensor.name] = &tensor;
  }
  for (onnx::ValueInfoProto& input : *model->mutable_graph()->mutable_input()) {
    const auto found = inputs.find(input.name());
    if (found == inputs.end()) continue;
    auto* shape = input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int i = 0; i < shape->dim_size(); ++i) {
      shape->mutable_dim(i)->set_dim_value(found->second->dims[static_cast<size_t>(i)]);
    }
  }
  model->mutable_graph()->clear_value_info();
  for (onnx::ValueInfoProto& output : *model->mutable_graph()->mutable_output()) {
    output.mutable_type()->mutable_tensor_type()->clear_shape();
  }
}

// Compares one value; returns whether the other resolved it in full.
bool Compare(const onnx::ValueInfoProto& theirs, const Tensor& ours) {
  if (!theirs.type().has_tensor_type() || !theirs.type().tensor_type().has_shape()) return false;
  const auto& shape = theirs.type().tensor_type().shape();
  bool resolved = true;
  for (const auto& dim : shape.dim()) resolved = resolved && dim.has_dim_value();
  EXPECT_TRUE(ours.known || !resolved) << ours.name;
  if (!ours.known) return resolved;
  EXPECT_EQ(static_cast<size_t>(shape.dim_size()), ours.dims.size()) << ours.name;
  for (int i = 0; i < std::min(shape.dim_size(), static_cast<int>(ours.dims.size())); ++i) {
    if (shape.dim(i).has_dim_value()) {
      EXPECT_EQ(shape.dim(i).dim_value(), ours.dims[static_cast<size_t>(i)]) << ours.name << " axis " << i;
    }
  }
  EXPECT_EQ(theirs.type().tensor_type().elem_type(), static_cast<int>(ours.dtype)) << ours.name;
  return resolved;
}

absl::StatusOr<ShapedGraph> BindAll(const std::shared_ptr<const Graph>& graph, bool rescale) {
  absl::StatusOr<ShapedGraph> bound = absl::InternalError("not tried");
  for (const int64_t length : kLengths) {
    DimBindings bindings{.batch = rescale || !graph->symbols.empty() ? kBatch : 0};
    for (const Value& value : graph->main().values) {
      if (!value.dims.has_value()) continue;
      for (const DeclaredDim& dim : *value.dims) {
        if (!dim.symbol.valid()) continue;
        const std::string& name = graph->symbols[dim.symbol.value()];
        const bool input = std::any_of(graph->main().inputs.begin(), graph->main().inputs.end(),
                                       [&](ValueId id) { return &graph->main().values[id.value()] == &value; });
        const bool seen = std::any_of(bindings.dims.begin(), bindings.dims.end(),
                                      [&name](const auto& entry) { return entry.first == name; });
        if (input && !seen && name != "batch") bindings.dims.emplace_back(name, length);
      }
    }
    if (!bindings.dims.empty() && graph->symbols[0] != "batch" &&
        std::find(graph->symbols.begin(), graph->symbols.end(), "batch") == graph->symbols.end()) {
      bindings.batch = 0;  // the leading dimension is among the named ones
    }
    bound = BindShapes(graph, bindings);
    if (bound.ok()) return bound;
  }
  return bound;
}

void CheckFile(const std::string& path) {
  SCOPED_TRACE(path);
  const auto graph = ReadOnnxFile(path);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto ours = BindAll(*graph, false);
  ASSERT_TRUE(ours.ok()) << ours.status();
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(ReadAll(path)));
  BindInputs(*ours, &model);
  const onnx::ShapeInferenceOptions options(true, 0, true);
  onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), options);
  std::map<std::string, const Tensor*> by_name;
  for (const Tensor& tensor : ours->tensors) by_name.emplace(tensor.name, &tensor);
  int64_t theirs_resolved = 0;
  for (const auto* list : {&model.graph().value_info(), &model.graph().output()}) {
    for (const onnx::ValueInfoProto& info : *list) {
      const auto found = by_name.find(info.name());
      ASSERT_TRUE(found != by_name.end()) << info.name();
      theirs_resolved += Compare(info, *found->second) ? 1 : 0;
    }
  }
  int64_t ours_resolved = 0;
  for (const Op& op : ours->ops) {
    for (const TensorId t : op.outputs) ours_resolved += t.valid() && ours->tensors[t.value()].known ? 1 : 0;
  }
  std::printf("%s: %ld operators, ours resolves %ld values, libonnx %ld\n", path.substr(path.rfind('/') + 1).c_str(),
              static_cast<long>(ours->coverage.ops), static_cast<long>(ours_resolved),
              static_cast<long>(theirs_resolved));
  EXPECT_GE(ours_resolved, theirs_resolved);
  EXPECT_EQ(ours->coverage.ops_with_known_shapes, ours->coverage.ops) << "a shape stays unknown";
}

TEST(Oracle, AgreesOnTheZoo) {
  const std::vector<std::string> files = OnnxFilesIn(HORUS_SOURCE_DIR "/examples/models/graphs");
  if (files.empty()) GTEST_SKIP() << "SKIPPED: examples/models/graphs holds no graph, nothing was compared";
  for (const std::string& file : files) CheckFile(file);
}

TEST(Oracle, AgreesOnTheSharedGraphs) {
  const std::vector<std::string> files = OnnxFilesIn(HORUS_SHARED_DATA "/onnx");
  if (files.empty()) {
    GTEST_SKIP() << "SKIPPED: no graph in " HORUS_SHARED_DATA
                    "/onnx (CMake: -DHORUS_SHARED_DATA=DIR), nothing was compared";
  }
  for (const std::string& file : files) CheckFile(file);
}

}  // namespace
}  // namespace horus
