// Files as torch.save writes them, byte for byte but for the alignment of members.
#ifndef NPUMESH_TESTS_UNIT_IO_TORCH_FILES_H_
#define NPUMESH_TESTS_UNIT_IO_TORCH_FILES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace npumesh::testing {

// A zip archive of stored members: (name, bytes). `in_64`: with the records of large archives.
std::string StoredZip(const std::vector<std::pair<std::string, std::string>>& members,
                      bool in_64 = false);

struct SavedTensor {
  std::string storage = "torch FloatStorage";  // module and class
  std::string bytes;                           // of the storage
  int64_t offset = 0;                          // in elements
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  std::string dtype;       // of torch, for UntypedStorage: "float8_e5m2"
  bool parameter = false;  // wrapped as torch.nn.Parameter
};

// The pickle of data.pkl.
std::string TorchPickle(const SavedTensor& saved);

std::string TorchFile(const SavedTensor& saved, bool in_64 = false);

}  // namespace npumesh::testing

#endif  // NPUMESH_TESTS_UNIT_IO_TORCH_FILES_H_
