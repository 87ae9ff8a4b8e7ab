// RunPackage: static_kernel_<datetime>.run, which carries compiled kernels to another machine.
//
// A POSIX shell script, and after it a tar archive. It checks its own text and the SHA-256 of the
// archive before it does anything, and refuses a machine whose processor lacks the instruction
// set, by the name of what is missing. Options: --install [--target DIR],
// --uninstall [--target DIR], --list, --verify, --help. Without --target the store is that of
// kernel_store.h. What --install writes is what KernelStore::Install would write: objects first,
// each manifest by one rename.
//
// Exit codes: 0; 2 usage; 3 damaged package or wrong machine; 4 the store cannot be written.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_RECORD_RUN_PACKAGE_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_RECORD_RUN_PACKAGE_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/static_kernel/store/instruction_set.h"
#include "graph/static_kernel/store/kernel_object.h"
#include "runtime/base/files/file_system.h"
#include "runtime/base/status.h"

namespace npumesh {

// A machine that can run the kernels of a package.
struct PackageMachine {
  std::string architecture;             // as `uname -m` says it
  std::string instructions;             // "x86-64-v3"
  std::vector<std::string_view> flags;  // /proc/cpuinfo has all of them
};

// What kernels need that were compiled on this machine for `set`.
PackageMachine MachineFor(InstructionSet set);

// Writes `path` (mode 0550) from `kernels`, which the store at `store_root` has published: their
// objects, the manifests and, where there are any, the sources. Whole or not at all. Errors:
// kInvalidArgument: there is no kernel, or a key or SHA-256 is not 64 hexadecimal digits;
// kNotFound: an object or a manifest is gone; kCorrupt: an object is damaged or its manifest names
// another one; kIo.
Status WriteRunPackage(const std::string& path, const std::string& store_root,
                       const std::vector<KernelObject>& kernels, const PackageMachine& machine,
                       FileSystem& fs = RealFileSystem());

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_RECORD_RUN_PACKAGE_H_
