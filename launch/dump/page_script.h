// The texts of a comparison's page: compare.js, compare.css and compare.html, embedded when npumesh
// is built.
#ifndef NPUMESH_LAUNCH_DUMP_PAGE_SCRIPT_H_
#define NPUMESH_LAUNCH_DUMP_PAGE_SCRIPT_H_

#include <string_view>

namespace npumesh {

std::string_view CompareScript();
std::string_view CompareStyle();
std::string_view CompareBody();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DUMP_PAGE_SCRIPT_H_
