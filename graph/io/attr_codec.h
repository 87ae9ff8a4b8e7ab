// Attributes and tensor descriptors between messages of ge_ir.proto and the graph in memory.
//
// Decoding empties a message field by field: whatever npumesh does not model stays behind and
// becomes the `opaque` bytes of the value, from which encoding starts again. So unknown fields,
// attribute groups and compile products survive. Tensor bytes are moved out, not copied. Internal
// to graph/io.
#ifndef NPUMESH_GRAPH_IO_ATTR_CODEC_H_
#define NPUMESH_GRAPH_IO_ATTR_CODEC_H_

#include <google/protobuf/map.h>

#include <string>

#include "graph/ir/attr_value.h"
#include "graph/ir/graph.h"
#include "proto/ge_ir.pb.h"

namespace npumesh {

using AttrDefs = google::protobuf::Map<std::string, ge::proto::AttrDef>;

// How a model is written down.
enum class Form {
  kGe,        // with everything a GE loader needs
  kTorchAir,  // as TorchAir builds it, without what GE adds
};

AttrValue DecodeAttr(ge::proto::AttrDef& def);
// Takes every entry; `defs` is empty afterwards.
AttrMap DecodeAttrs(AttrDefs* defs);
// The dtype is kUndefined when no version knows its number; the number survives in `opaque`. A
// shape that GE moved into `origin_shape` is the shape.
TensorDesc DecodeDesc(ge::proto::TensorDescriptor& def);

void EncodeAttr(const AttrValue& value, Form form, ge::proto::AttrDef* def);
void EncodeAttrs(const AttrMap& attrs, Form form, AttrDefs* defs);
void EncodeDesc(const TensorDesc& desc, Form form, ge::proto::TensorDescriptor* def);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_ATTR_CODEC_H_
