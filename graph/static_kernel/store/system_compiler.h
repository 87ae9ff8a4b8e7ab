// SystemCompiler: the C++ compiler of this machine, which turns sources of static kernels into one
// shared object.
//
// It is $CXX, else c++, looked up on PATH and started without a shell, with a time limit and in a
// separate process group, which is killed when the limit passes. Its temporary files lie beside the
// object.
//
// Thread-safety: immutable.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_STORE_SYSTEM_COMPILER_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_STORE_SYSTEM_COMPILER_H_

#include <chrono>
#include <string>
#include <vector>

#include "graph/static_kernel/store/instruction_set.h"
#include "runtime/base/status.h"

namespace npumesh {

struct CompileRequest {
  std::vector<std::string> sources;  // paths of .cc files
  std::string object;                // path of the shared object to write
  InstructionSet instructions = InstructionSet::kBaseline;
  bool debug = false;  // -O0 -g: op_debug_level 2
  // With debug: the folder whose files a debugger shows in place of the sources of the same names;
  // empty: it shows the sources. Neither it nor the folder of the sources has a "=" in its path.
  std::string shown_in;
  std::chrono::seconds time_limit{60};
};

class SystemCompiler {
 public:
  // $CXX may have arguments after the program, split at blanks. Errors: kNotFound names what was
  // looked for, and where; kUnsupported: what was found does not answer --version.
  static Result<SystemCompiler> Find();

  // The first line of `--version`, which stands in every key.
  const std::string& version() const { return version_; }
  const std::vector<std::string>& command() const { return command_; }

  // Compiles, links and checks that the result is a shared object (ELF) of this kind of machine.
  // Blocks for the time limit at most. Errors: kTimeout: the time limit passed; kUnsupported: the
  // exit code or signal and the first line that the compiler said with "error" in it, else its
  // first line, or what is wrong with the object; kIo: the compiler cannot be started. Nothing is
  // left at `object` then.
  Status Compile(const CompileRequest& request) const;

 private:
  SystemCompiler(std::vector<std::string> command, std::string version)
      : command_(std::move(command)), version_(std::move(version)) {}
  std::vector<std::string> command_;
  std::string version_;
};

// The flags of every static kernel but those of the instruction set and -o; they stand in every
// key. No contraction into fused multiply-adds, because the graph rounds after each operator.
std::vector<std::string> KernelFlags(bool debug);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_STORE_SYSTEM_COMPILER_H_
