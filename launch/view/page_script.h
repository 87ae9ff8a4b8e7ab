// The texts of a graph's page: graph.js, graph.css and graph.html, embedded when npumesh is built.
#ifndef NPUMESH_LAUNCH_VIEW_PAGE_SCRIPT_H_
#define NPUMESH_LAUNCH_VIEW_PAGE_SCRIPT_H_

#include <string_view>

namespace npumesh {

std::string_view GraphScript();
std::string_view GraphStyle();
std::string_view GraphBody();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_PAGE_SCRIPT_H_
