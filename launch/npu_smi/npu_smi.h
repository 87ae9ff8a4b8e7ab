// What `npu-smi` answers: the tables and fields of the vendor's tool that scripts read, about the
// NPUs that a process of this host would simulate. What nothing simulates (power, temperature,
// serial numbers) is NA.
#ifndef NPUMESH_LAUNCH_NPU_SMI_NPU_SMI_H_
#define NPUMESH_LAUNCH_NPU_SMI_NPU_SMI_H_

#include <span>
#include <string>

#include "runtime/base/env/env.h"
#include "runtime/base/status.h"

namespace npumesh {

// The answer to the words behind the command's name: `info`, `info -l`, `info -m`, `info -t TYPE
// [-i NPU] [-c CHIP]`, `-v` and `-h`. Devices and their memory are those of `env`.
//
// Errors (kInvalidArgument): a word, a type or a device that is unknown.
Result<std::string> NpuSmi(const Env& env, std::span<const std::string> words);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_NPU_SMI_NPU_SMI_H_
