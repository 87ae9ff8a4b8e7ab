// What the store keeps: shared objects, and for each key which of them computes it.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_STORE_KERNEL_OBJECT_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_STORE_KERNEL_OBJECT_H_

#include <string>

namespace npumesh {

// The beginning of a key, as people see it.
inline std::string ShortKey(const std::string& key) {
  return key.substr(0, 12);
}

// One static kernel before it is compiled.
struct KernelSource {
  std::string key;      // 64 hexadecimal digits: SHA-256 of all that decides its machine code
  std::string symbol;   // the C function that the object exports
  std::string title;    // for people: "RmsNorm float[128,768]"
  std::string record;   // JSON of its operators, kept beside the source
  std::string program;  // C++ text of the function, without the common beginning
  // With BuildPlan::shown_in: the name of the file there that holds CompleteSource of it.
  std::string file = {};
};

// A program that compiles alone.
inline std::string CompleteSource(const std::string& beginning, const std::string& program) {
  return beginning + "\n" + program + "\n";
}

// The same once it is published.
struct KernelObject {
  std::string key;
  std::string symbol;
  std::string title;
  std::string object;  // path of the shared object in the store
  std::string sha256;  // of the shared object

  // Where it comes from. Told to people; nothing is decided by it.
  std::string instructions;  // NameOf(InstructionSet)
  std::string compiler;      // the first line of its --version
  std::string generator;     // BuildPlan::generator
  std::string created;       // "2026-11-22T19:20:02Z"

  bool operator==(const KernelObject&) const = default;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_STORE_KERNEL_OBJECT_H_
