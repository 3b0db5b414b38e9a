// SPDX-License-Identifier: Apache-2.0
// Writes chains and transformers in ONNX's wire format.
#include "bench/micro/synthetic_onnx.h"

#include <fcntl.h>
#include <unistd.h>

#include <initializer_list>
#include <utility>

#include "graph/onnx_writer.h"

namespace horus::bench {
namespace {

namespace w = onnx_writer;

constexpr int64_t kIrVersion = 8;  // what libonnx 1.12 knows
constexpr int64_t kOpset = 17;
constexpr uint32_t kGraphField = 7, kNodeField = 1, kInitialiserField = 5, kRawField = 9;
constexpr int64_t kSequence = 128, kHeads = 12;

w::Bytes Opset() { return w::Text(8, w::Text(1, "") + w::Int(2, kOpset)); }

// The header of a length-delimited field.
w::Bytes Begin(uint32_t field, int64_t length) {
  w::Bytes out;
  w::Varint(&out, uint64_t{field} << 3 | 2);
  w::Varint(&out, static_cast<uint64_t>(length));
  return out;
}

// Adds nodes to a net; every node has one output, named after its scope.
class Builder {
 public:
  explicit Builder(SyntheticNet* net) : net_(*net) {}

  void Scope(std::string scope) { scope_ = std::move(scope); }

  std::string Node(const std::string& type, const std::vector<std::string>& inputs,
                   const std::vector<w::Bytes>& attributes = {}) {
    const std::string name = scope_ + "/" + type + "_" + std::to_string(net_.node_count++);
    net_.nodes += w::Text(kNodeField, w::Node(type, inputs, {name + "_output_0"}, attributes, name));
    return name + "_output_0";
  }

  std::string Weight(const std::string& name, const std::vector<int64_t>& dims) {
    net_.weights.push_back({scope_ + "." + name, dims});
    return net_.weights.back().name;
  }

  std::string Ints(const std::vector<int64_t>& values) {
    return Node("Constant", {},
                {w::TensorAttribute("value", w::Int64Tensor("", {static_cast<int64_t>(values.size())}, values))});
  }

  std::string Real(float value) {
    return Node("Constant", {}, {w::TensorAttribute("value", w::FloatTensor("", {}, {value}))});
  }

  std::string Linear(const std::string& x, const std::string& name, int64_t in, int64_t out) {
    const std::string product = Node("MatMul", {x, Weight(name + ".weight", {in, out})});
    return Node("Add", {Weight(name + ".bias", {out}), product});
  }

  // [batch, sequence, rest...] with the first two sizes read from `x`, as tracing exporters write a view.
  std::string View(const std::string& x, const std::vector<int64_t>& rest) {
    std::vector<std::string> parts;
    for (const int64_t axis : {0, 1}) {
      const std::string size = Node("Gather", {Node("Shape", {x}), Ints({axis})}, {w::IntAttribute("axis", 0)});
      parts.push_back(size);
    }
    parts.push_back(Ints(rest));
    return Node("Reshape", {x, Node("Concat", parts, {w::IntAttribute("axis", 0)})});
  }

  std::string Normalise(const std::string& x, int64_t hidden) {
    const w::Bytes last = w::IntsAttribute("axes", {-1});
    const std::string centred = Node("Sub", {x, Node("ReduceMean", {x}, {last})});
    const std::string variance = Node("ReduceMean", {Node("Pow", {centred, Real(2)})}, {last});
    const std::string deviation = Node("Sqrt", {Node("Add", {variance, Real(1e-12f)})});
    const std::string scaled = Node("Mul", {Node("Div", {centred, deviation}), Weight("LayerNorm.weight", {hidden})});
    return Node("Add", {scaled, Weight("LayerNorm.bias", {hidden})});
  }

  std::string Attention(const std::string& x, int64_t hidden) {
    const auto heads = [&](const std::string& name, std::vector<int64_t> order) {
      return Node("Transpose", {View(Linear(x, name, hidden, hidden), {kHeads, hidden / kHeads})},
                  {w::IntsAttribute("perm", order)});
    };
    const std::string query = heads("query", {0, 2, 1, 3});
    const std::string key = heads("key", {0, 2, 3, 1});
    const std::string value = heads("value", {0, 2, 1, 3});
    const std::string scores = Node("Div", {Node("MatMul", {query, key}), Real(8)});
    const std::string weights = Node("Softmax", {scores}, {w::IntAttribute("axis", -1)});
    const std::string mixed =
        Node("Transpose", {Node("MatMul", {weights, value})}, {w::IntsAttribute("perm", {0, 2, 1, 3})});
    return Linear(View(mixed, {hidden}), "output.dense", hidden, hidden);
  }

  std::string Gelu(const std::string& x) {
    const std::string erf = Node("Erf", {Node("Div", {x, Real(1.4142135f)})});
    return Node("Mul", {Node("Mul", {x, Node("Add", {erf, Real(1)})}), Real(0.5f)});
  }

 private:
  SyntheticNet& net_;
  std::string scope_ = "net";
};

void Finish(SyntheticNet* net, const std::vector<w::Dim>& input, const std::string& output) {
  net->header =
      w::Text(2, "synthetic") + w::Text(11, w::Value("input", w::kFloat, input)) + w::Text(12, w::UntypedValue(output));
}

w::Bytes Fields(const SyntheticWeight& weight) { return w::Tensor(weight.name, weight.dims, w::kFloat); }

bool WriteAll(int file, const std::string& bytes, int64_t* offset) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = pwrite(file, bytes.data() + done, bytes.size() - done, *offset + static_cast<int64_t>(done));
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  *offset += static_cast<int64_t>(bytes.size());
  return true;
}

}  // namespace

int64_t SyntheticWeight::payload_bytes() const {
  auto bytes = static_cast<int64_t>(sizeof(float));
  for (const int64_t dim : dims) bytes *= dim;
  return bytes;
}

std::string SyntheticNet::Bytes() const {
  std::string graph = nodes + header;
  for (const SyntheticWeight& weight : weights) graph += w::Text(kInitialiserField, Fields(weight));
  return w::Int(1, kIrVersion) + w::Text(kGraphField, graph) + Opset();
}

bool SyntheticNet::WriteWithPayloads(const std::string& path) const {
  std::vector<std::string> before;  // each payload: fields of the graph and of the tensor
  int64_t length = static_cast<int64_t>(nodes.size() + header.size());
  for (const SyntheticWeight& weight : weights) {
    const int64_t payload = weight.payload_bytes();
    const w::Bytes tensor = Fields(weight) + Begin(kRawField, payload);
    before.push_back(Begin(kInitialiserField, static_cast<int64_t>(tensor.size()) + payload) + tensor);
    length += static_cast<int64_t>(before.back().size()) + payload;
  }
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  int64_t offset = 0;
  bool good = WriteAll(file, w::Int(1, kIrVersion) + Opset() + Begin(kGraphField, length) + nodes + header, &offset);
  for (size_t i = 0; good && i < weights.size(); ++i) {
    good = WriteAll(file, before[i], &offset);
    offset += weights[i].payload_bytes();
  }
  good = good && ftruncate(file, offset) == 0 && fsync(file) == 0;  // no write-back while it is read
  return close(file) == 0 && good;
}

SyntheticNet Chain(int64_t nodes) {
  constexpr int64_t kWidth = 64;
  SyntheticNet net{.name = "chain"};
  Builder b(&net);
  std::string x = "input";
  while (net.node_count < nodes) {
    b.Scope("layers." + std::to_string(net.node_count / 2));
    x = b.Node("Gemm", {x, b.Weight("weight", {kWidth, kWidth}), b.Weight("bias", {kWidth})});
    x = b.Node("Relu", {x});
  }
  Finish(&net, {"batch", kWidth}, x);
  return net;
}

SyntheticNet Transformer(int64_t nodes, int64_t hidden) {
  constexpr int64_t kInnerFactor = 4;  // width of the feed-forward part over the width of the model
  SyntheticNet net{.name = "transformer"};
  Builder b(&net);
  std::string x = "input";
  for (int64_t layer = 0; net.node_count < nodes; ++layer) {
    const std::string scope = "encoder.layer." + std::to_string(layer);
    b.Scope(scope + ".attention");
    x = b.Normalise(b.Node("Add", {b.Attention(x, hidden), x}), hidden);
    b.Scope(scope + ".feed_forward");
    const std::string inner = b.Gelu(b.Linear(x, "intermediate.dense", hidden, kInnerFactor * hidden));
    x = b.Normalise(b.Node("Add", {b.Linear(inner, "output.dense", kInnerFactor * hidden, hidden), x}), hidden);
  }
  Finish(&net, {"batch", kSequence, hidden}, x);
  return net;
}

}  // namespace horus::bench
