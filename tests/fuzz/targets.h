// What must hold for any bytes that a reader is given. Each target returns an empty text, or what
// did not hold; a crash, a sanitizer report or boundless memory is found by whoever calls it.
#ifndef NPUMESH_TESTS_FUZZ_TARGETS_H_
#define NPUMESH_TESTS_FUZZ_TARGETS_H_

#include <string>
#include <string_view>

namespace npumesh::fuzz {

// A model file of any form: an error with a message, or a model that can be saved, loaded again and
// saved to the same bytes; its weights load or give errors, its text forms can be written.
std::string CheckModel(std::string_view bytes);

// The front of a .npy file: an error with a message, or a header whose own text reads the same.
std::string CheckNpy(std::string_view bytes);

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_TARGETS_H_
