// Request: what one rank was asked to do in a collective, in a form that peers can read.
//
// A Request is published in shared memory or sent as a message, so it is fixed-width, has no
// pointers and carries a version. `Fingerprint` condenses the fields that must agree; the rest is
// for people.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_REQUEST_H_
#define NPUMESH_COLLECTIVES_CONTRACT_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/contract/collective_kind.h"
#include "runtime/base/data_type.h"
#include "runtime/base/status.h"
#include "runtime/world/transport.h"

namespace npumesh {

struct Request {
  static constexpr uint32_t kLayout = 2;
  static constexpr size_t kAlgorithmBytes = 16;
  static constexpr size_t kNodeBytes = 120;
  static constexpr size_t kRefusalBytes = 256;

  uint32_t layout = kLayout;
  CollectiveKind kind = CollectiveKind::kNone;
  int32_t dtype = 0;     // DataType
  uint32_t op = 0;       // ReduceOp
  int32_t root = -1;     // group rank
  uint32_t refused = 0;  // 1: this rank cannot take part; `refusal` says why
  uint64_t count = 0;    // elements, as the caller named them
  uint64_t sequence = 0;
  char algorithm[kAlgorithmBytes] = {};  // the row of the table, zero-terminated
  char node[kNodeBytes] = {};            // operator name, cut to fit, zero-terminated
  char refusal[kRefusalBytes] = {};      // zero-terminated

  void set_algorithm(std::string_view name);
  void set_node(std::string_view name);
  void set_refusal(std::string_view reason);
};
static_assert(sizeof(Request) == 432);

// Equal for two requests that may run together: kind, dtype, count, op, root, sequence, node name
// and algorithm. Names that only number operators of one type apart ("HcomAllReduce",
// "HcomAllReduce_3") count as equal, because the ranks' graphs may number them differently. Never
// 0.
uint64_t Fingerprint(const Request& request);

// The same without the sequence, which `AtCall` adds: what a program repeats is condensed once.
uint64_t ContentFingerprint(const Request& request);
uint64_t AtCall(uint64_t content_fingerprint, uint64_t sequence);

// A request made ready to be published again and again.
struct Announcement {
  // `serial`: equal numbers stand for equal requests, among those that one communicator makes; 0:
  // this request is not to be recognised again.
  Announcement(const Request& request = {}, uint64_t serial = 0)  // NOLINT: a Request is one
      : request(request), content_fingerprint(ContentFingerprint(request)), serial(serial) {}

  Request request;  // `sequence` is the meeting's
  uint64_t content_fingerprint;
  uint64_t serial;
};

// The field, of those that must agree, whose difference explains most, and every request's value of
// it as text.
struct Disagreement {
  std::string_view field;  // "count"
  std::vector<std::string> values;
};
// Nullopt when all requests agree. REQUIRES: at least one request.
std::optional<Disagreement> FindDisagreement(const std::vector<Request>& requests);

// The places of the values that are not the most frequent one; all places when no value is the most
// frequent. Ascending.
std::vector<size_t> MinorityOf(const std::vector<std::string>& values);

// One line that says which rank deviates and how: kMismatch; OK when all agree. A rank that refused
// to take part is named first, with its reason (kPeerLost on the others). `requests` by group rank;
// `world_ranks` translates for people; `group` is the group's name. Every rank gets the same text
// from the same requests.
Status Compare(const std::vector<Request>& requests, const std::vector<int>& world_ranks,
               std::string_view group);

// The block sizes of an AllToAllV, row by row: `sent[s * n + r]` bytes go from group rank s to r,
// which expects `expected[r * n + s]`. kMismatch names the first pair that does not fit.
Status CompareBlocks(const std::vector<uint64_t>& sent, const std::vector<uint64_t>& expected,
                     const std::vector<int>& world_ranks);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_REQUEST_H_
