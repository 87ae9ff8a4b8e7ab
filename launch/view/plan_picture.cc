// The picture of a plan. Lengths are pixels, y grows downwards, addresses upwards.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "launch/view/graph_facts.h"
#include "launch/view/graph_picture.h"
#include "launch/view/plan_view.h"

namespace npumesh {
namespace {

constexpr double kLeft = 96;  // room for addresses and the names of lanes
constexpr double kRight = 24;
constexpr double kLanes = 78;  // y of the first lane
constexpr double kLane = 30;
constexpr double kArena = 164;  // y of the end of the arena
constexpr double kArenaHeight = 420;
constexpr double kCharacter = 6.2;    // width in the font of labels
constexpr double kWideCharacter = 9;  // in that of the title

class Painter {
 public:
  explicit Painter(const PlanView& plan)
      : plan_(plan),
        steps_(static_cast<double>(std::max<size_t>(plan.steps.size(), 1))),
        column_(std::clamp(2000 / steps_, 6.0, 72.0)) {}

  std::string Run() const {
    double width = std::max(kLeft + steps_ * column_ + kRight, 960.0);
    width = std::max(width, 24 + kWideCharacter * static_cast<double>(Title().size()));
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<title>{2}</title>\n<style>{3}</style>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        width, kArena + kArenaHeight + 44, XmlText(Title()), StyleSheet());
    svg += Header() + Lanes() + Scale();
    for (const PlannedTensor& tensor : plan_.tensors) svg += Life(tensor);
    return svg + "</svg>\n";
  }

 private:
  static std::string StyleSheet() {
    return "text{font:11px monospace;fill:#222}.head{font-size:14px;font-weight:bold}"
           ".axis{text-anchor:end;fill:#666}.tick{text-anchor:middle;fill:#666}"
           ".grid{stroke:#ddd}.edge{stroke:#999;fill:none}"
           ".compute{fill:#dfe9f5;stroke:#3a78b5}.comm{fill:#fdebd0;stroke:#c2740c}"
           ".wait{stroke:#c2740c;stroke-dasharray:3 2}"
           ".tensor{fill:#e4f1e4;stroke:#3d8b40}.kept{fill:#bfe0c0;stroke:#2c6a2f}";
  }

  double X(int step) const { return kLeft + step * column_; }
  double Y(uint64_t address) const {
    const double share = static_cast<double>(address) /
                         static_cast<double>(std::max<uint64_t>(plan_.arena_bytes, 1));
    return kArena + kArenaHeight * (1 - share);
  }

  std::string Title() const { return "plan of " + plan_.graph; }

  std::string Header() const {
    return fmt::format(
        "<text class=\"head\" x=\"12\" y=\"24\">{}</text>\n"
        "<text x=\"12\" y=\"44\">peak {} = arena {} + scratch {} + inputs {} + constants "
        "{}</text>\n"
        "<text x=\"12\" y=\"60\">in blocks of the device; {} of the arena in use at once</text>\n",
        XmlText(Title()), HumanBytes(plan_.peak_bytes), HumanBytes(plan_.arena_bytes),
        HumanBytes(plan_.scratch_bytes), HumanBytes(plan_.input_bytes),
        HumanBytes(plan_.constant_bytes), HumanBytes(plan_.live_bytes));
  }

  std::string Lanes() const {
    std::string svg;
    const bool communicates = std::any_of(plan_.steps.begin(), plan_.steps.end(),
                                          [](const PlanStepView& step) { return step.beside; });
    for (int lane = 0; lane <= (communicates ? 1 : 0); ++lane) {
      svg += fmt::format("<text class=\"axis\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kLeft - 8,
                         kLanes + lane * kLane + 17, lane == 0 ? "compute" : "communicate");
    }
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      svg += StepBox(static_cast<int>(i), plan_.steps[i]);
    }
    return svg;
  }

  // A step beside reaches from its launch to where it is sure to be finished.
  std::string StepBox(int index, const PlanStepView& step) const {
    const double y = kLanes + (step.beside ? kLane : 0);
    const double width = (step.done_by - index) * column_;
    std::string svg = fmt::format(
        "<g><title>#{} {} {}{}&#10;{} of the arena in use</title>"
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"24\"/>{}</g>\n",
        index, XmlText(step.type), XmlText(step.name),
        step.wait_for < 0 ? "" : fmt::format("&#10;waits for #{}", step.wait_for),
        HumanBytes(step.live_bytes), step.beside ? "comm" : "compute", X(index), y, width,
        Label(step.type, X(index), y + 16, width));
    if (step.wait_for >= 0) {
      svg += fmt::format(
          "<line class=\"wait\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>\n",
          X(index), kLanes, kLanes + 2 * kLane);
    }
    return svg;
  }

  // As much of a text as fits, with dots for the rest; nothing when that is less than three
  // characters.
  static std::string Label(const std::string& text, double x, double y, double width) {
    const auto room = static_cast<size_t>(std::max(0.0, (width - 6) / kCharacter));
    if (room < 3) return "";
    const std::string shown = text.size() <= room ? text : text.substr(0, room - 2) + "..";
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x + 3, y, XmlText(shown));
  }

  std::string Scale() const {
    std::string svg;
    for (int quarter = 0; quarter <= 4; ++quarter) {
      const uint64_t address = plan_.arena_bytes / 4 * static_cast<uint64_t>(quarter);
      svg += fmt::format(
          "<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>"
          "<text class=\"axis\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
          kLeft, Y(address), kLeft + steps_ * column_, Y(address), kLeft - 8, Y(address) + 4,
          HumanBytes(address));
    }
    const int every = std::max(1, static_cast<int>(40 / column_));
    for (int step = 0; step < static_cast<int>(plan_.steps.size()); step += every) {
      svg += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                         X(step) + column_ / 2, kArena + kArenaHeight + 18, step);
    }
    return svg + fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">step</text>\n",
                             kLeft - 24, kArena + kArenaHeight + 18);
  }

  std::string Life(const PlannedTensor& tensor) const {
    const int end = std::min(tensor.last + 1, static_cast<int>(plan_.steps.size()));
    const double top = Y(tensor.offset + tensor.bytes);
    const double height = Y(tensor.offset) - top;
    const double width = (end - std::min(tensor.first, end)) * column_;
    return fmt::format(
        "<g><title>{}{}{}&#10;{} at byte {}, steps {} to {}</title>"
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.2f}\" width=\"{:.1f}\" height=\"{:.2f}\" "
        "data-first=\"{}\" data-last=\"{}\" data-offset=\"{}\" data-bytes=\"{}\"/>{}</g>\n",
        XmlText(tensor.name), tensor.also.empty() ? "" : " = ",
        XmlText(fmt::format("{}", fmt::join(tensor.also, " = "))), HumanBytes(tensor.bytes),
        tensor.offset, tensor.first, tensor.last, tensor.output ? "kept" : "tensor",
        X(tensor.first), top, width, height, tensor.first, tensor.last, tensor.offset, tensor.bytes,
        height < 13 ? "" : Label(tensor.name, X(tensor.first), top + height / 2 + 4, width));
  }

  const PlanView& plan_;
  double steps_;   // how many columns
  double column_;  // width of a step
};

}  // namespace

std::string ToSvg(const PlanView& plan) {
  return Painter(plan).Run();
}

}  // namespace npumesh
