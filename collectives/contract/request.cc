#include "collectives/contract/request.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "collectives/contract/fixed_text.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

template <size_t N>
std::string_view Text(const char (&source)[N]) {
  return {source, strnlen(source, N)};
}

// Multiply and fold: every bit of `value` reaches every bit of the hash.
uint64_t Mix(uint64_t hash, uint64_t value) {
  const auto product =
      static_cast<unsigned __int128>(hash ^ value ^ 0x9e3779b97f4a7c15u) * 0xd1342543de82ef95u;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Eight bytes a time: this runs in every collective.
uint64_t Mix(uint64_t hash, std::string_view bytes) {
  hash = Mix(hash, bytes.size());
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = Mix(hash, word);
    bytes.remove_prefix(8);
  }
  uint64_t rest = 0;
  bytes.copy(reinterpret_cast<char*>(&rest), sizeof(rest));
  return Mix(hash, rest);
}

// "HcomAllReduce_3" -> "HcomAllReduce"; other names stay.
std::string_view WithoutNumber(std::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  const bool numbered = end != std::string_view::npos && end + 1 < name.size() && name[end] == '_';
  return numbered ? name.substr(0, end) : name;
}

// A field that must agree, and how a person reads it.
struct Field {
  std::string_view name;
  std::string (*text)(const Request&);
};

std::string TypeText(const Request& r) {
  return std::string(Name(static_cast<DataType>(r.dtype)));
}

// In the order in which a difference explains most.
constexpr std::array<Field, 8> kFields = {{
    {"place in the sequence", [](const Request& r) { return fmt::format("{}", r.sequence); }},
    {"kind", [](const Request& r) { return std::string(Name(r.kind)); }},
    {"dtype", TypeText},
    {"count", [](const Request& r) { return fmt::format("{}", r.count); }},
    {"reduction",
     [](const Request& r) {
       return std::string(Reduces(r.kind) ? Name(static_cast<ReduceOp>(r.op)) : "none");
     }},
    {"root", [](const Request& r) { return fmt::format("{}", r.root); }},
    {"operator", [](const Request& r) { return std::string(WithoutNumber(Text(r.node))); }},
    {"algorithm (HCCL_ALGO)", [](const Request& r) { return std::string(Text(r.algorithm)); }},
}};

// The value most ranks have; the lowest rank's among equals.
std::string MajorityOf(const std::vector<std::string>& values) {
  std::map<std::string, int> votes;
  for (const std::string& value : values) ++votes[value];
  const std::string* best = &values[0];
  for (const std::string& value : values) {
    if (votes[value] > votes[*best]) best = &value;
  }
  return *best;
}

std::string Describe(const Request& r) {
  std::string text = NameOf(r.kind, Text(r.node));
  const bool is_untyped = r.dtype == static_cast<int32_t>(DataType::kUndefined);  // not told
  if (r.kind == CollectiveKind::kBarrier || is_untyped) return text;
  text += fmt::format(" {}[{}]", TypeText(r), r.count);
  const std::string_view reduction = Name(static_cast<ReduceOp>(r.op));
  // Records of other libraries tell neither the reduction nor the root.
  if (Reduces(r.kind) && reduction != "unknown") text += fmt::format(" {}", reduction);
  if (TraitsOf(r.kind).has_root && r.root >= 0) text += fmt::format(" root {}", r.root);
  return text;
}

Status Refusal(const Request& r, int world_rank, std::string_view group) {
  return Error(Code::kMismatch, "{} (group {}, call {}): rank {} cannot take part: {}", Describe(r),
               group, r.sequence, world_rank, Text(r.refusal));
}

}  // namespace

void Request::set_algorithm(std::string_view name) {
  CopyText(name, algorithm);
}

void Request::set_node(std::string_view name) {
  CopyText(name, node);
}

void Request::set_refusal(std::string_view reason) {
  refused = 1;
  CopyText(reason, refusal);
}

uint64_t Fingerprint(const Request& r) {
  return AtCall(ContentFingerprint(r), r.sequence);
}

uint64_t AtCall(uint64_t content_fingerprint, uint64_t sequence) {
  const uint64_t hash = Mix(content_fingerprint, sequence);
  return hash == 0 ? 1 : hash;
}

uint64_t ContentFingerprint(const Request& r) {
  const auto pair = [](uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; };
  uint64_t hash = pair(static_cast<uint32_t>(r.kind), static_cast<uint32_t>(r.dtype));
  hash = Mix(hash, pair(r.op, static_cast<uint32_t>(r.root)));
  hash = Mix(hash, r.count);
  hash = Mix(hash, r.refused);
  hash = Mix(hash, Text(r.algorithm));
  return Mix(hash, WithoutNumber(Text(r.node)));
}

std::optional<Disagreement> FindDisagreement(const std::vector<Request>& requests) {
  for (const Field& field : kFields) {
    Disagreement found{field.name, {}};
    for (const Request& request : requests) found.values.push_back(field.text(request));
    const auto other = [&](const std::string& value) { return value != found.values[0]; };
    if (std::any_of(found.values.begin(), found.values.end(), other)) return found;
  }
  return std::nullopt;
}

std::vector<size_t> MinorityOf(const std::vector<std::string>& values) {
  std::map<std::string_view, size_t> votes;
  for (const std::string& value : values) ++votes[value];
  size_t most = 0;
  for (const auto& [value, count] : votes) most = std::max(most, count);
  const auto leads = [&](const auto& vote) { return vote.second == most; };
  const bool tied = std::count_if(votes.begin(), votes.end(), leads) > 1;
  std::vector<size_t> minority;
  for (size_t i = 0; i < values.size(); ++i) {
    if (tied || votes[values[i]] < most) minority.push_back(i);
  }
  return minority;
}

Status Compare(const std::vector<Request>& requests, const std::vector<int>& world_ranks,
               std::string_view group) {
  for (size_t r = 0; r < requests.size(); ++r) {
    if (requests[r].refused) return Refusal(requests[r], world_ranks[r], group);
  }
  const std::optional<Disagreement> found = FindDisagreement(requests);
  if (!found) return Status();
  const std::vector<std::string>& values = found->values;
  const std::string usual = MajorityOf(values);
  std::vector<int> rest;
  std::string deviations;
  size_t witness = 0;
  for (size_t r = 0; r < requests.size(); ++r) {
    if (values[r] == usual) {
      if (rest.empty()) witness = r;
      rest.push_back(world_ranks[r]);
    } else {
      deviations +=
          fmt::format("rank {} has {} ({}), ", world_ranks[r], values[r], Describe(requests[r]));
    }
  }
  std::sort(rest.begin(), rest.end());
  return Error(Code::kMismatch,
               "{} (group {}, call {}): {} differs: {}rank{} {} {} {}; compare what feeds this "
               "operator on those ranks",
               Describe(requests[witness]), group, requests[witness].sequence, found->field,
               deviations, rest.size() == 1 ? "" : "s", RangeText(rest),
               rest.size() == 1 ? "has" : "have", usual);
}

Status CompareBlocks(const std::vector<uint64_t>& sent, const std::vector<uint64_t>& expected,
                     const std::vector<int>& world_ranks) {
  const size_t n = world_ranks.size();
  for (size_t s = 0; s < n; ++s) {
    for (size_t r = 0; r < n; ++r) {
      if (sent[s * n + r] == expected[r * n + s]) continue;
      return Error(
          Code::kMismatch,
          "rank {} sends {} bytes to rank {}, which expects {}; send_counts and recv_counts "
          "must mirror each other",
          world_ranks[s], sent[s * n + r], world_ranks[r], expected[r * n + s]);
    }
  }
  return Status();
}

}  // namespace npumesh
