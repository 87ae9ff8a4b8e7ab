// Port names: in the descriptors of TorchAir's files, in name tables of GE's.
//
// A table is a pair of lists, names and port indexes, sorted by name: the position in the list says
// nothing. Internal to graph/io.
#ifndef NPUMESH_GRAPH_IO_PORT_NAMES_H_
#define NPUMESH_GRAPH_IO_PORT_NAMES_H_

#include <string_view>

#include "graph/io/attr_codec.h"

namespace npumesh {

// Names the ports of `node` that have no name yet and takes the tables out of `def`. Entries
// without a port stay in `def`. A table whose lists differ in length is dropped with a warning that
// starts with `who`.
void TakePortNames(std::string_view who, ge::proto::OpDef& def, Node* node);

// Writes the tables: sorted and without empty ones for GE, in port order for TorchAir.
void PutPortNames(const Node& node, Form form, ge::proto::OpDef* def);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_PORT_NAMES_H_
