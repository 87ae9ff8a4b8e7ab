// What an offline model (.om) says beside its graph: who made it of what, which shapes it was made
// for, and what it needs. JSON inside of the file (docs/formats/om.md).
#ifndef NPUMESH_GRAPH_OFFLINE_OFFLINE_FACTS_H_
#define NPUMESH_GRAPH_OFFLINE_OFFLINE_FACTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/group_names.h"
#include "graph/ir/shape.h"
#include "runtime/base/status.h"

namespace npumesh {

// Shapes that the caller chooses from, as atc's --dynamic_batch_size, --dynamic_image_size and
// --dynamic_dims give them. A choice is called a gear.
struct Gears {
  enum class Kind : uint8_t {
    kNone,
    kBatch,  // one number, which every open dimension takes
    kImage,  // height and width of one input
    kDims,   // a number for each open dimension, in the order of the inputs and their axes
  };
  // Dimension `axis` of input `input` takes number `number` of the gear.
  struct Slot {
    int input = 0;
    int axis = 0;
    int number = 0;
    bool operator==(const Slot&) const = default;
  };
  Kind kind = Kind::kNone;
  std::vector<Slot> slots;
  std::vector<std::vector<int64_t>> values;  // by gear; all of one length

  bool any() const { return kind != Kind::kNone; }
  // The types with the open dimensions that gear `gear` closes. REQUIRES: gear < values.size().
  std::vector<TensorType> Apply(std::vector<TensorType> types, size_t gear) const;
};

struct OfflineFacts {
  std::string made_of;  // the name of the file, without its folder
  std::string command;  // as it was typed
  std::string version;  // of npumesh
  std::string soc;      // --soc_version
  // Of a package of several ranks: whose graph this is. ranks 0: of any rank.
  int rank = 0;
  int ranks = 0;
  GroupTable groups;
  Gears gears;
  bool single_operator = false;  // its graph is one of GraphOf (single_operator.h)
  std::vector<std::string> output_names;
  // By gear, or once without gears: the types of the outputs. Empty where only a run can tell.
  std::vector<std::vector<TensorType>> outputs;
  // Device memory of the largest plan beside inputs and outputs, and of the weights. 0: not known
  // before inputs are.
  uint64_t work_bytes = 0;
  uint64_t weight_bytes = 0;
};

std::string ToJson(const OfflineFacts& facts);
// Errors (kCorrupt) name the member.
Result<OfflineFacts> ParseOfflineFacts(std::string_view json);
// Of a file, or of its bytes. Errors: those of ReadDescription; kUnsupported for a file that is no
// offline model of npumesh.
Result<OfflineFacts> ReadOfflineFacts(const std::string& path);
Result<OfflineFacts> ReadOfflineFactsOf(std::string_view bytes);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OFFLINE_OFFLINE_FACTS_H_
