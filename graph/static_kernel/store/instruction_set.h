// InstructionSet: for which processors a static kernel is compiled.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_STORE_INSTRUCTION_SET_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_STORE_INSTRUCTION_SET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace npumesh {

// The levels of the x86-64 psABI; any other processor has one kind, its compiler's default.
enum class InstructionSet : uint8_t { kBaseline, kX86V2, kX86V3, kX86V4 };

// "x86-64-v3"; "baseline".
std::string_view NameOf(InstructionSet set);
std::optional<InstructionSet> InstructionSetNamed(std::string_view name);
// What a processor needs for it, as /proc/cpuinfo writes it; nothing for kBaseline.
std::vector<std::string_view> FlagsOf(InstructionSet set);
// For the compiler: {"-march=x86-64-v3"}; nothing for kBaseline.
std::vector<std::string> CompilerFlags(InstructionSet set);

// The best that this processor has, as the kernel of the system tells it (/proc/cpuinfo), which
// leaves out what the system does not save between processes. Limits for tests (GLIBC_TUNABLES,
// the variables of oneDNN) do not matter here. kBaseline when the system does not tell.
InstructionSet InstructionsHere();
// What this processor lacks for `set`, as /proc/cpuinfo writes it: "avx512f avx512dq"; empty:
// nothing.
std::string MissingFor(InstructionSet set);

// The same from the text of a /proc/cpuinfo; its first processor answers for all.
InstructionSet InstructionsOf(std::string_view cpuinfo);
std::string MissingFor(InstructionSet set, std::string_view cpuinfo);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_STORE_INSTRUCTION_SET_H_
