// The operators once more, written plainly from the vendor's descriptions and docs/operators.md,
// and with nothing of graph/ops: what the engine computes is compared with this.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_PLAIN_OPS_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_PLAIN_OPS_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "tests/fuzz/engine/plain_tensor.h"

namespace npumesh::fuzz {

using PlainTensors = std::vector<PlainTensor>;

struct PlainCall {
  const Node& node;
  std::vector<const PlainTensor*> inputs;  // by port of the node; null: not connected

  // Null when the port is not fed.
  const PlainTensor* find(std::string_view port) const;
  // REQUIRES: the port is fed.
  const PlainTensor& in(std::string_view port) const { return *find(port); }
  // port0, port1, ... of a dynamic input.
  std::vector<const PlainTensor*> list(std::string_view port) const;
  std::vector<int64_t> ints(std::string_view port) const;
};

// The outputs; nullopt: the call is not legal.
using PlainCompute = std::function<std::optional<PlainTensors>(const PlainCall& call)>;

struct PlainOp {
  PlainCompute compute;
  // Whether results change little where inputs do. Of a rough input other operators make something
  // unsure.
  bool steady = true;
  // Output 0 is the bytes of input 0.
  bool view = false;
  // Output 0 is the storage of input 0, overwritten; a node without outputs overwrites it as well.
  bool writes = false;
  // Reads no bytes of its input, only its type.
  bool asks_type = false;
};

using PlainOpTable = std::map<std::string, PlainOp, std::less<>>;

// All of them, by type.
const PlainOpTable& PlainOps();

// The families. Internal to plain_*.cc.
void AddPointwiseOps(PlainOpTable& table);
void AddReduceOps(PlainOpTable& table);
void AddProductOps(PlainOpTable& table);
void AddLayoutOps(PlainOpTable& table);
void AddShapingOps(PlainOpTable& table);
void AddGatherOps(PlainOpTable& table);
void AddScatterOps(PlainOpTable& table);

// Adds numbers as a float of 24 digits does, and knows whether the order could have mattered.
class ExactSum {
 public:
  void Add(Number x);
  Number sum() const { return sum_; }
  bool exact() const;

 private:
  Number sum_ = 0;
  Number size_ = 0;
  bool whole_ = true;
};

// The elements of `x` in another arrangement: `source` gives the offset for each position of
// `dims`, or -1 for `other`.
PlainTensor Arranged(const PlainTensor& x, Extents dims,
                     const std::function<int64_t(const Extents& at)>& source, Number other = 0);

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_PLAIN_OPS_H_
