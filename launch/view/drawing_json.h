// A drawing for the pages, as launch/page/drawing.js reads it.
#ifndef NPUMESH_LAUNCH_VIEW_DRAWING_JSON_H_
#define NPUMESH_LAUNCH_VIEW_DRAWING_JSON_H_

#include <functional>

#include "launch/view/layered_layout.h"
#include "runtime/base/text/json.h"

namespace npumesh {

// `more`: further members of a box, as an object.
nlohmann::json DrawingJson(const Drawing& drawing,
                           const std::function<nlohmann::json(const Box&)>& more);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_DRAWING_JSON_H_
