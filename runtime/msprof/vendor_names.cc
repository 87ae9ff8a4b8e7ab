#include "runtime/msprof/vendor_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

// What a name contains in small letters, and the kind it stands for; a word comes before those that
// are part of it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kCallWords = {{
    {"allreduce", "allReduce"},
    {"allgather", "allGather"},
    {"reducescatter", "reduceScatter"},
    {"alltoallvc", "alltoallvc"},
    {"alltoallv", "alltoallv"},
    {"alltoall", "alltoall"},
    {"batchsendrecv", "batchsendrecv"},
    {"broadcast", "broadcast"},
    {"bcast", "broadcast"},
    {"scatter", "scatter"},
    {"reduce", "reduce"},
    {"receive", "receive"},
    {"recv", "receive"},
    {"send", "send"},
    {"barrier", "invalid"},
}};

constexpr std::array<std::string_view, 6> kMatrixWords = {"matmul", "gemm",      "conv2d",
                                                          "conv3d", "attention", "conv1d"};

bool Contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

}  // namespace

std::string_view CallKind(std::string_view name) {
  std::string small = LowerCase(name);
  small.erase(std::remove(small.begin(), small.end(), '_'), small.end());
  for (const auto& [word, kind] : kCallWords) {
    if (Contains(small, word)) return kind;
  }
  return "invalid";
}

bool IsMessageKind(std::string_view kind) {
  return kind == "send" || kind == "receive" || kind == "batchsendrecv";
}

std::string GroupId(const ProfiledGroup& group) {
  return fmt::format("{}_{}", group.name, group.number);
}

uint64_t GroupHash(std::string_view id) {
  uint32_t high = 0;
  uint32_t low = 0;
  for (const char each : id) {
    const auto byte = static_cast<unsigned char>(each);
    high = high * 29 + byte;
    low = low * 131 + byte;
  }
  return uint64_t{high} << 32 | low;
}

std::string CallName(std::string_view kind, uint64_t group_hash, uint64_t number,
                     uint64_t occurrence) {
  return fmt::format("hcom_{}__{:03}_{}_{}", kind, group_hash % 1000, number, occurrence);
}

std::string_view CoreOf(std::string_view operator_type) {
  const std::string small = LowerCase(operator_type);
  const bool matrix =
      std::any_of(kMatrixWords.begin(), kMatrixWords.end(),
                  [&small](std::string_view word) { return Contains(small, word); });
  return matrix ? "AI_CORE" : "AI_VECTOR_CORE";
}

std::string_view ApiLevel(std::string_view name) {
  if (name.starts_with("Hccl")) return "communication";
  return name.starts_with("aclrt") || !name.starts_with("acl") ? "runtime" : "acl";
}

}  // namespace npumesh
