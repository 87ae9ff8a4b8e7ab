// OperatorRecord: what a subscription writes into its pipe for each operator.
#ifndef NPUMESH_RUNTIME_ACL_MSPROFILER_OPERATOR_RECORD_H_
#define NPUMESH_RUNTIME_ACL_MSPROFILER_OPERATOR_RECORD_H_

#include <array>
#include <cstdint>

namespace npumesh {

// Texts that are longer are cut. A whole number of records fits into what a pipe writes at once.
struct OperatorRecord {
  static constexpr uint32_t kMagic = 0x4f50'4e31;

  uint32_t magic = kMagic;
  uint32_t model = 0;
  uint64_t begin_us = 0;
  uint64_t end_us = 0;
  uint32_t thread = 0;
  std::array<char, 100> type{};  // with a terminating 0, as the name
  std::array<char, 384> name{};
};
static_assert(sizeof(OperatorRecord) == 512);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_MSPROFILER_OPERATOR_RECORD_H_
