// TorchAir's options, keys of GE, as those of an npumesh session (docs/config.md).
#ifndef NPUMESH_PYTHON_TORCHAIR_NATIVE_OPTIONS_H_
#define NPUMESH_PYTHON_TORCHAIR_NATIVE_OPTIONS_H_

#include <string>
#include <vector>

#include "python/torchair_native/object.h"

namespace npumesh::torchair {

// Options of a session: those of `engine`, given to InitializeGraphEngine, then those of `graph`,
// given to load. Keys without meaning for npumesh are left out.
Texts SessionOptions(const Texts& engine, const Texts& graph);

// Adds the options of a dump that the engine was asked for by its own keys (ge.exec.enableDump,
// ...).
void AddDumpOptions(const Texts& engine, Texts& session);

// The flags of `frozenInput`, "0,1,1".
std::vector<bool> FrozenFlags(const Texts& graph);

}  // namespace npumesh::torchair

#endif  // NPUMESH_PYTHON_TORCHAIR_NATIVE_OPTIONS_H_
