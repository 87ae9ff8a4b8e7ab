// Tensors that torch.save wrote (.pt): a zip archive with a pickle and the bytes of storages. The
// pickle is read as data, nothing of it is called.
#ifndef NPUMESH_GRAPH_IO_TORCH_FILE_H_
#define NPUMESH_GRAPH_IO_TORCH_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/tensor.h"

namespace npumesh {

// Where the elements of a saved tensor lie in its file.
struct TorchTensorPlace {
  TensorType type;
  uint64_t offset = 0;           // of element [0, .., 0], in bytes
  std::vector<int64_t> strides;  // in elements, none is negative; as many as the shape has axes
};

// The one tensor of a whole file: all its elements lie in it. Parameters are tensors, as are those
// of a card. Errors: kCorrupt; kUnsupported for what is no tensor, for sparse and quantised ones,
// for other dtypes, big-endian files and those that torch wrote before version 1.6.
Result<TorchTensorPlace> FindTorchTensor(std::string_view file);

// Whole, in C order; packed ones stay in the file. Errors name the file: those of MappedFile::Open
// and FindTorchTensor; kUnsupported for a tensor whose repeated elements take more than 1 GiB.
Result<Tensor> ReadTorchTensor(const std::string& path);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_TORCH_FILE_H_
