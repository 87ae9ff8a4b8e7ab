// Python's way to write bytes, which the NodeDef-like text uses. Internal to graph/io.
#ifndef NPUMESH_GRAPH_IO_PYTHON_BYTES_H_
#define NPUMESH_GRAPH_IO_PYTHON_BYTES_H_

#include <optional>
#include <string>
#include <string_view>

namespace npumesh {

// repr(bytes) without the leading b: single quotes unless only those occur in the text.
std::string PythonRepr(std::string_view bytes);

// The bytes of such a literal, quotes included; nullopt when it is not one.
std::optional<std::string> FromPythonRepr(std::string_view literal);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_PYTHON_BYTES_H_
