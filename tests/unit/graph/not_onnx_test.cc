// SPDX-License-Identifier: Apache-2.0
// Files that people take for ONNX models are called what they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "graph/onnx_writer.h"
#include "graph/reader.h"

namespace horus {
namespace {

namespace w = onnx_writer;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ErrorOf(std::string_view bytes) {
  const auto graph = ReadOnnx({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  return std::string(graph.status().message());
}

std::string ReluModel() {
  const w::Bytes model = w::Model({.nodes = {w::Node("Relu", {"x"}, {"y"})},
                                   .inputs = {w::Value("x", w::kFloat, {1})},
                                   .outputs = {w::UntypedValue("y")}});
  return std::string(model.begin(), model.end());
}

TEST(NotOnnx, NamesWhatItIsAndWhatToDo) {
  using std::string_literals::operator""s;
  const std::pair<std::string, const char*> cases[] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 102400000\n",
       "a git-lfs pointer: run `git lfs pull`"},
      {"<!DOCTYPE html>\n<html lang=\"en\">", "an HTML page"},
      {"\xEF\xBB\xBF\n  <HTML><head>", "an HTML page"},
      {"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>", "an XML document"},
      {"{\"message\": \"Not Found\"}", "a JSON text"},
      {"[{\"error\": 1}]", "a JSON text"},
      {"model,batch\nresnet.onnx,8\n", "a text file"},
      {"jobs:\n- name: r\xC3\xA9sum\xC3\xA9\n", "a text file"},
      {"PK\3\4\0\0\10\10\0\0archive/data.pkl"s,
       "a zip archive, as torch.save writes: export the model with torch.onnx.export"},
      {"\x80\x02}q\0"s, "a Python pickle"},
      {"\x1F\x8B\x08\0\0\0\0\0"s, "a compressed file: unpack it"},
      {"\xFD"
       "7zXZ\0\0\4"s,
       "a compressed file: unpack it"},
      {"\x89HDF\r\n\x1A\n\0\0"s, "an HDF5 file"},
      {"\x60\1\0\0\0\0\0\0{\"weight\":{\"dtype\":\"F32\""s, "a safetensors file, which has weights but no graph"},
  };
  for (const auto& [bytes, what] : cases)
    EXPECT_THAT(ErrorOf(bytes), HasSubstr("ONNX bytes: not an ONNX model but "s + what));
}

TEST(NotOnnx, LeavesDamageToTheParser) {
  const std::string whole = ReluModel();
  ASSERT_EQ(ErrorOf(whole), "");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(ErrorOf(whole.substr(0, size)), Not(HasSubstr("not an ONNX model")));
  }
}

// "BZh": 90 bytes of field 8, an operator set, of which the first is of a field that nobody knows.
TEST(NotOnnx, RefusesNoModelForItsFirstBytes) {
  const std::string odd = "BZh\1r\x56" + std::string(86, 'x');
  EXPECT_EQ(ErrorOf(odd + ReluModel()), "");
  EXPECT_THAT(ErrorOf(odd), HasSubstr("a compressed file"));
}

TEST(NotOnnx, FilesAreNamedWithTheirPath) {
  const std::string path = ::testing::TempDir() + "horus_pointer.onnx";
  std::ofstream(path) << "version https://git-lfs.github.com/spec/v1\n";
  const auto graph = ReadOnnxFile(path);
  std::remove(path.c_str());
  EXPECT_EQ(graph.status().message(),
            "ONNX file '" + path + "': not an ONNX model but a git-lfs pointer: run `git lfs pull`");
}

}  // namespace
}  // namespace horus
