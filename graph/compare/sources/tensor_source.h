// TensorSource: the tensors of one rank in one step, wherever they come from: a folder of dump
// files, a folder of .npy files, a run in this process.
//
// Operators are known by their key, the name as it stands in file names, so that all kinds of
// sources can be compared with each other and with a graph.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_COMPARE_SOURCES_TENSOR_SOURCE_H_
#define NPUMESH_GRAPH_COMPARE_SOURCES_TENSOR_SOURCE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "graph/ir/tensor.h"

namespace npumesh {

// `name` with blank, '.', '/' and '\' replaced by '_', as in the names of dump files.
std::string OperatorKey(std::string_view name);

enum class Side : uint8_t { kInput, kOutput };
std::string_view Name(Side side);  // "input", "output"

struct SourceOperator {
  std::string key;
  std::string name;  // as in the graph where the source knows it, else the key
  std::string type;  // empty: unknown
  // Numbers of the inputs and outputs that are there, ascending.
  std::vector<int> inputs;
  std::vector<int> outputs;

  const std::vector<int>& indexes(Side side) const {
    return side == Side::kInput ? inputs : outputs;
  }
};

// What is known of a tensor whose elements may not be there.
struct DumpedStatistics {
  TensorType type;
  // Of all elements, as the dump says them: NaN and infinities count. nullopt: it does not say.
  std::optional<double> max;
  std::optional<double> min;
  std::optional<double> mean;
  std::optional<double> norm;  // the root of the sum of squares
  std::string checksum;        // of the bytes, as text; empty: unknown
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // A folder, or what else tells a person where the tensors come from.
  virtual const std::string& title() const = 0;
  // In the order in which they ran, as far as the source knows.
  virtual const std::vector<SourceOperator>& operators() const = 0;
  // Error: kNotFound when the operator has no such tensor; else as the files' reader, naming the
  // file.
  virtual Result<Tensor> Load(const std::string& key, Side side, int index) const = 0;
  // False: only statistics of the tensor are there, and Load is an error.
  virtual bool HasElements(const std::string& /*key*/, Side /*side*/, int /*index*/) const {
    return true;
  }
  // nullopt: the source knows no statistics of the tensor; its elements tell.
  virtual std::optional<DumpedStatistics> StatisticsOf(const std::string& /*key*/, Side /*side*/,
                                                       int /*index*/) const {
    return std::nullopt;
  }

  // Where the program called the operator, for a person: "graph_test.py, line 10, in forward: h = ..";
  // empty: the source does not know. May read a file.
  virtual std::string CalledAt(const std::string& /*key*/) const { return {}; }

  // The file of a tensor; empty without one.
  virtual std::string FileOf(const std::string& /*key*/, Side /*side*/, int /*index*/) const {
    return {};
  }

  // Device address while it was dumped; 0: unknown.
  virtual uint64_t AddressOf(const std::string& /*key*/, Side /*side*/, int /*index*/) const {
    return 0;
  }

  // The operator of this key, or null.
  const SourceOperator* Find(std::string_view key) const;
};

// Tensors in memory.
class MemorySource final : public TensorSource {
 public:
  explicit MemorySource(std::string title) : title_(std::move(title)) {}

  // Adds a tensor; an operator's first tensor decides its place in the order. A second tensor of
  // the same place replaces the first.
  void Add(std::string_view name, std::string_view type, Side side, int index, Tensor tensor);

  const std::string& title() const override { return title_; }
  const std::vector<SourceOperator>& operators() const override { return operators_; }
  Result<Tensor> Load(const std::string& key, Side side, int index) const override;

 private:
  std::string title_;
  std::vector<SourceOperator> operators_;
  std::map<std::string, size_t, std::less<>> places_;  // by key
  std::map<std::tuple<std::string, Side, int>, Tensor> tensors_;
};

// "no output 1 of Add_3 in dump/": the error of Load.
Status NoSuchTensor(const TensorSource& source, std::string_view key, Side side, int index);

// Adds `index` to the operator's numbers, keeping them ascending.
void AddIndex(SourceOperator& op, Side side, int index);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_SOURCES_TENSOR_SOURCE_H_
