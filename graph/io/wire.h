// Protobuf messages from and to bytes and text, with limits that hostile input cannot exceed.
//
// Internal to graph/io and graph/onnx: protobuf types do not leave these folders. Nothing here
// prints.
#ifndef NPUMESH_GRAPH_IO_WIRE_H_
#define NPUMESH_GRAPH_IO_WIRE_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace npumesh {

// The most bytes a message may have, on the wire or as text: GE's loader takes INT32_MAX.
inline constexpr uint64_t kMaxMessageBytes = 2147483647;
// How deep messages may nest in a file.
inline constexpr int kMaxDepth = 100;

// Called with each piece of bytes that is no longer needed.
using PieceDone = std::function<void(std::string_view piece)>;

// Errors (kCorrupt): too long, truncated, nested deeper than `kMaxDepth`, not this message.
Status ParseWire(std::string_view bytes, google::protobuf::Message* message,
                 const PieceDone& done = nullptr);

// Strict text form: an unknown field name is an error. Errors (kCorrupt) carry line and column.
Status ParseText(std::string_view text, google::protobuf::Message* message);

// Equal messages give equal bytes: map entries are sorted by key.
std::string SerializeWire(const google::protobuf::Message& message);

// Text form with sorted map keys; unknown fields are left out, since no reader accepts them.
std::string PrintText(const google::protobuf::Message& message);

// What is left in `message` after its modelled fields were taken; empty when nothing is.
std::string Remainder(const google::protobuf::Message& message);

// Puts the bytes of Remainder back into an empty message.
void RestoreRemainder(const std::string& opaque, google::protobuf::Message* message);

bool HasUnknownFields(const google::protobuf::Message& message);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_WIRE_H_
