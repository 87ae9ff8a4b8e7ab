// Lists of ranks: all of them, and as people write them.
#ifndef NPUMESH_RUNTIME_BASE_TEXT_RANK_LIST_H_
#define NPUMESH_RUNTIME_BASE_TEXT_RANK_LIST_H_

#include <string>
#include <vector>

namespace npumesh {

// 0, 1, ... size - 1.
std::vector<int> AllRanks(int size);

// "0-2,4": ascending numbers, runs joined.
std::string RangeText(const std::vector<int>& numbers);

// "rank 3" or "ranks 1-2,5".
std::string RanksText(const std::vector<int>& ranks);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_TEXT_RANK_LIST_H_
