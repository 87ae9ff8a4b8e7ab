// The words and the environment of a program that is about to be started.
//
// Thread-safety: pure functions, while the environment does not change.
#ifndef NPUMESH_RUNTIME_BASE_TEXT_PROGRAM_WORDS_H_
#define NPUMESH_RUNTIME_BASE_TEXT_PROGRAM_WORDS_H_

#include <string>
#include <vector>

namespace npumesh {

// As execve and posix_spawn take them, with the null pointer. Valid as long as `words` is.
std::vector<char*> PointersTo(const std::vector<std::string>& words);

// The environment of this process with `more` (NAME=value) in the place of what it has of that
// name.
std::vector<std::string> WithEnvironment(const std::vector<std::string>& more);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_TEXT_PROGRAM_WORDS_H_
